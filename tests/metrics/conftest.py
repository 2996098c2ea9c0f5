"""Settings of the property tests: no deadline, as a first import may take a second on a busy machine."""

from hypothesis import settings

settings.register_profile("calm", deadline=None)
settings.load_profile("calm")
