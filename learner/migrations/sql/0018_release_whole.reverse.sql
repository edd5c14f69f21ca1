DROP TRIGGER learner_evaluation_not_emptied ON learner_evaluation;
DROP TRIGGER learner_lineage_not_emptied ON learner_modelrelease_lineage;
DROP TRIGGER learner_release_not_emptied ON learner_modelrelease;
DROP TRIGGER learner_evaluation_stays ON learner_evaluation;
DROP FUNCTION learner_evaluation_stays();
DROP TRIGGER learner_lineage_stays ON learner_modelrelease_lineage;
DROP FUNCTION learner_lineage_stays();
