DROP TRIGGER learner_answers_not_emptied ON learner_answerseries;
DROP TRIGGER learner_answers_stay_paid ON learner_answerseries;
DROP TRIGGER learner_answers_paid_once ON learner_answerseries;
DROP TRIGGER learner_responses_not_emptied ON learner_randomizedlabel;
DROP TRIGGER learner_responses_stay ON learner_randomizedlabel;
DROP FUNCTION learner_responses_stay();
DROP TRIGGER learner_response_fits ON learner_randomizedlabel;
DROP FUNCTION learner_check_response();
