"""Write the pictures of the documentation: docs/pictures/NAME.svg, of described nodes of tests/nodes.

python docs/pictures.py           write the pictures
python docs/pictures.py --check   change nothing; exit with 1 and name the pictures that are out of date
"""

from __future__ import annotations

import sys
from pathlib import Path

from linkgauge.agent.pipeline.diagnose import diagnose
from linkgauge.agent.pipeline.registry import SOURCES, measure_nothing
from linkgauge.exporters.drawing.svg import as_svg
from linkgauge.models.site.schema import Site
from linkgauge.probes.synthetic.build import build

ROOT = Path(__file__).resolve().parents[1]
# Picture -> described node, and lines of TOML that break it.
PICTURES = {
    "three-faults": (
        "hgx-h100",
        "[device.gpu1]\nwidth = 8\n[device.mlx5_4]\nup = false\n[device.gpu3]\ninactive = [7]\n",
    ),
    "gb200-tray": ("gb200-tray", ""),
}

# Other ends of cables, as in the site file: a leaf for each GPU.
CABLES = {"three-faults": {f"mlx5_{number}/1": f"leaf{number - 1} port 17" for number in range(2, 10)}}


def drawn(name: str) -> str:
    """The picture."""
    node, faults = PICTURES[name]
    described = (ROOT / "tests/nodes" / f"{node}.toml").read_text(encoding="utf-8")
    report = diagnose(build(described + faults), SOURCES, measure_nothing, Site(cables=CABLES.get(name, {}))).report
    return as_svg(report)


def main(given: list[str]) -> int:
    """Write or compare; 1: a picture differed, and --check was given."""
    stale = 0
    for name in PICTURES:
        file, text = ROOT / "docs/pictures" / f"{name}.svg", drawn(name)
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            stale += 1
            print(f"{'out of date' if '--check' in given else 'written'}: {file.relative_to(ROOT)}")
            if "--check" not in given:
                file.parent.mkdir(exist_ok=True)
                file.write_text(text, encoding="utf-8")
    return 1 if stale and "--check" in given else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
