import pytest
from django import forms
from django.utils.translation import gettext_lazy, override

from annotation.errors import InvalidConfiguration
from annotation.work.rest import checked


class Form(forms.Form):
    days = forms.IntegerField(max_value=90)

    def clean(self):
        if self.cleaned_data.get("days") == 13:
            raise forms.ValidationError(gettext_lazy("No user has this name."))


def test_what_fits_comes_as_the_form_reads_it():
    assert checked(Form({"days": "7"})) == {"days": 7}


def test_what_does_not_is_refused_in_english():
    with override("de"), pytest.raises(InvalidConfiguration) as refused:
        checked(Form({"days": 91}))
    assert str(refused.value) == "days: Ensure this value is less than or equal to 90."
    with override("de"), pytest.raises(InvalidConfiguration) as whole:
        checked(Form({"days": 13}))
    assert str(whole.value) == "No user has this name."
