-- How many classes a project may have; every page and every estimator is made for so many and no more.
ALTER TABLE annotation_project ADD CONSTRAINT annotation_project_classes CHECK (
    CASE WHEN jsonb_typeof(classes) = 'array' THEN jsonb_array_length(classes) BETWEEN 2 AND 1000 ELSE false END
);
