-- Outside the write-ahead log: no archive, replica or base backup holds what did not pass the gate.
ALTER TABLE annotation_gatepart SET UNLOGGED;
ALTER TABLE annotation_gatepiece SET UNLOGGED;

-- Counts of tries are worth nothing after a crash, so counting one does not wait for a disk.
ALTER TABLE annotation_ratecount SET UNLOGGED;
