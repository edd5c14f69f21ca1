-- Scores are computed again after a crash, and numbers of a model do not compress.
ALTER TABLE learner_scorepart SET UNLOGGED;
ALTER TABLE learner_scorepart ALTER COLUMN scores SET STORAGE EXTERNAL;
