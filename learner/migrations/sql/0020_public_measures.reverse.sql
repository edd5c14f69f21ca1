DROP TRIGGER learner_evaluation_public ON learner_evaluation;
DROP FUNCTION learner_evaluation_public();
