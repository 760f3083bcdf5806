"""The description of the package on an index: the README, without links that lead nowhere there."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_PICTURE = re.compile(r"^!\[[^\]]*\]\((?!\w+:)[^)]*\)\n\n", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*)\]\((?!\w+:)([^)]*)\)")


class Description(MetadataHookInterface):
    """Leads links to the repository that `project.urls` names; without one they become text."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the readme in *metadata*."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        if repository := metadata.get("urls", {}).get("Repository"):
            text = _LINK.sub(rf"[\1]({repository}/blob/main/\2)", text)
        else:
            text = _LINK.sub(r"\1", _PICTURE.sub("", text))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
