"""Gates decide which texts a crowd may see: the k-anonymity gate and the threshold gate."""

from privacy.gate.kanonymity import KAnonymityGate
from privacy.gate.threshold import ThresholdGate

__all__ = ["KAnonymityGate", "ThresholdGate"]
