"""Featurisers that a project can choose."""

from learner.features.choice import FeaturesChoice
from learner.features.declared_rules import DeclaredRules
from learner.features.encoder import MultilingualEncoder, PublicEncoder
from learner.features.planned import PlannedFeatures
from learner.features.static_encoder import StaticTable

# What projects may choose, in the order in which forms list it; a new featuriser joins by one line.
CHOICES: tuple[type[FeaturesChoice], ...] = (
    DeclaredRules,
    PlannedFeatures,
    StaticTable,
    PublicEncoder,
    MultilingualEncoder,
)
