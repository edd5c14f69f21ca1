"""How records become vectors: declared rules, a public encoder, or principal directions that are paid for."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("annotation", "0012_gate_stages")]

    operations = [
        migrations.AddField(
            model_name="project",
            name="features",
            field=models.CharField(
                choices=[
                    ("standard", "declared rules: hashed words, bounds and categories, pooled pixels"),
                    ("encoder", "a public sentence encoder"),
                    ("principal", "principal directions of the images, found privately"),
                ],
                default="standard",
                max_length=10,
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="features_epsilon",
            field=models.FloatField(
                blank=True, help_text="What finding principal directions costs the pool, once.", null=True
            ),
        ),
        migrations.AddConstraint(
            model_name="project",
            constraint=models.CheckConstraint(
                name="annotation_project_features_fit_data",
                condition=models.Q(("features", "standard"), ("features_epsilon", None))
                | models.Q(("data_kind", "text"), ("features", "encoder"), ("features_epsilon", None))
                | models.Q(
                    ("data_kind", "image"),
                    ("features", "principal"),
                    ("features_epsilon__gt", 0),
                    ("features_epsilon__isnull", False),
                    ("oracle", "trusted"),
                ),
            ),
        ),
    ]
