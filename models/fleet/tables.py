"""All tables of a fleet, computed by one engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from . import expressions

if TYPE_CHECKING:
    from ibis.backends import BaseBackend
    from ibis.expr.types import Table

DataFrame: TypeAlias = Any  # a pandas.DataFrame


@dataclass(frozen=True)
class Fleet:
    """The tables, each a pandas DataFrame with the columns of its expression."""

    machines: DataFrame
    nodes: DataFrame  # those that need an operator, the first to drain first
    reasons: DataFrame
    outliers: DataFrame
    differences: DataFrame
    absences: DataFrame
    gaps: DataFrame
    cohorts: DataFrame

    @property
    def tables(self) -> Mapping[str, DataFrame]:
        """The tables by name."""
        return vars(self)


def evaluate(engine: BaseBackend, rows: Table) -> Fleet:
    """The tables of these rows. The engine stores the intermediate results, each of which several tables use."""
    newest = engine.create_table("linkgauge_newest", expressions.newest(rows), temp=True)
    cohorts = engine.create_table("linkgauge_cohorts", expressions.distributions(newest), temp=True)
    apart = engine.create_table("linkgauge_apart", expressions.outliers(newest, cohorts), temp=True)
    absent = engine.create_table("linkgauge_absent", expressions.absences(newest), temp=True)
    causes = expressions.reasons(newest, cohorts, apart, absent)

    def frame(expression: Table) -> DataFrame:
        return engine.to_pyarrow(expression).to_pandas()

    return Fleet(
        machines=frame(expressions.machines(newest)),
        nodes=frame(expressions.ranking(causes)),
        reasons=frame(causes),
        outliers=frame(expressions.ordered_outliers(apart)),
        differences=frame(expressions.differences(newest)),
        absences=frame(expressions.ordered_absences(absent)),
        gaps=frame(expressions.gaps(newest, cohorts)),
        cohorts=frame(expressions.ordered_cohorts(cohorts)),
    )
