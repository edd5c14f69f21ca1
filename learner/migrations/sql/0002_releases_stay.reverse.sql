DROP TRIGGER learner_release_stays ON learner_modelrelease;
DROP FUNCTION learner_release_stays();
