DROP TRIGGER learner_rate_stays ON annotation_project;
DROP FUNCTION learner_rate_stays();
DROP TRIGGER learner_coins_stay ON learner_secretdraw;
DROP FUNCTION learner_coins_stay();
