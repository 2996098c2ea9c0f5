"""The studio: people make and judge data of ambiguous questions, item by item, over one database.

Its application is `whichsense.studio.api.create_app`.
"""

from whichsense.studio.kinds import KINDS, Kind
from whichsense.studio.project import Project, Settings, create_project
from whichsense.studio.workbench import Studio

__all__ = ["KINDS", "Kind", "Project", "Settings", "Studio", "create_project"]
