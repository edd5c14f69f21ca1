DROP TRIGGER learner_looks_grow ON learner_screenlooks;
DROP FUNCTION learner_looks_grow();
DROP TRIGGER learner_screen_stays ON annotation_project;
DROP FUNCTION learner_screen_stays();
