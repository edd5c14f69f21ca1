-- Counts of tries are worth nothing after a crash: no try waits for a disk.
ALTER TABLE dpal_site_cachedcount SET UNLOGGED;
