-- Counts of tries are worth nothing after a crash, so counting one does not wait for a disk.
ALTER TABLE annotation_ratecount SET UNLOGGED;
