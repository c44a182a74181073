"""What a fleet shows, as Ibis expressions over a table of rows (rows.py). Each engine of Ibis computes them.

A cohort is the same quantity at the same position of all nodes of one machine type; of links only those with the same
product there. Its middle is the median. Its spread is the median absolute deviation, at least _FLOOR of the median:
neither is moved by the nodes that differ.
"""

from __future__ import annotations

import ibis
from ibis import _
from ibis.expr.types import Table

from .rows import DUMPS, UNKNOWN

FEWEST = 5  # nodes of a cohort
SIGMAS = 5.0  # of 400,000 values with normal noise, 0.1 are further below the median
LEAST = 0.03  # share of the median; a smaller difference costs no job much
FEW, FEW_SHARE = 2, 0.1  # more nodes of a cohort with the same loss are another kind of node, not faults
SURE = 2  # slow flows of a node; a single one may be a busy moment
DRAIN = 0.1  # share of the median; a link that lost more is a critical fault (as in FINDINGS: "critical")
_FLOOR = 0.002  # scatter of equal copies (docs/reference/accuracy.md); trained rates are all equal
_NORMAL = 1.4826  # standard deviation of a normal distribution per median absolute deviation
PORT_RATE = "port rate"  # quantity of an uncorroborated port (models/rules/network)
NIC_RATE = "trained rate:nic"
_NUMERIC = ("rate", "link", "count")
_COHORT = ["machine", "kind", "quantity", "position"]
_RANKS = (("failed", 3), ("unknown", 2), ("degraded", 1))  # verdicts, the worst first
_EQUAL = [*_COHORT, "text"]  # the text of a link is the product of its device


def newest(rows: Table) -> Table:
    """The rows of the newest report of each node. Of several of one time, of the one with the worst verdict."""
    reports = rows.filter(_.kind == "report")
    last = reports.group_by("node").agg(last=_.number.max())
    ranked = reports.join(last, "node").filter(_.number == _.last).mutate(rank=_.text.cases(*_RANKS, else_=0))
    worst = ranked.group_by("node").agg(worst=_.rank.max())
    chosen = ranked.join(worst, "node").filter(_.rank == _.worst).group_by("node").agg(report=_.report.max())
    return rows.semi_join(chosen, "report")


def machines(rows: Table) -> Table:
    """Each machine type: its nodes by verdict and by what to do with them."""
    counts = {name: (_.text == name).cast("int64").sum() for name in ("ok", "degraded", "failed", "unknown")}
    reports = rows.filter(_.kind == "report").group_by("machine").agg(nodes=_.count(), **counts)
    return reports.order_by([ibis.desc("nodes"), "machine"])


def distributions(rows: Table) -> Table:
    """The number of nodes, lowest value, median, highest value and spread of each cohort."""
    known = rows.filter(_.kind.isin(_NUMERIC) & _.number.notnull() & (_.machine != UNKNOWN)).select(*_EQUAL, "number")
    middle = known.group_by(_EQUAL).agg(
        nodes=_.count(), low=_.number.min(), median=_.number.median(), high=_.number.max()
    )
    apart = known.join(middle, _EQUAL).mutate(apart=(_.number - _.median).abs())
    deviations = apart.group_by(_EQUAL).agg(deviation=_NORMAL * _.apart.median())
    both = middle.join(deviations, _EQUAL)
    return both.mutate(spread=ibis.greatest(_.deviation, _FLOOR * _.median)).drop("deviation")


def ordered_cohorts(cohorts: Table) -> Table:
    """The distributions in the order of their cohorts."""
    return cohorts.order_by(_EQUAL)


def outliers(rows: Table, cohorts: Table) -> Table:
    """Values far from the median of their cohort: `share` of the median, and `z` in spreads."""
    known = rows.filter(_.kind.isin(_NUMERIC) & _.number.notnull()).select("node", *_EQUAL, "number")
    large = cohorts.filter((_.nodes >= FEWEST) & (_.median > 0)).select(*_EQUAL, "nodes", "median", "spread")
    values = known.join(large, _EQUAL)
    apart = values.mutate(share=_.number / _.median - 1, z=(_.number - _.median) / _.spread)
    return apart.filter((_.z.abs() >= SIGMAS) & (_.share.abs() >= LEAST))


def ordered_outliers(apart: Table) -> Table:
    """The outliers, the lowest share of the median first."""
    return apart.order_by(["share", "node", *_EQUAL])


def differences(rows: Table) -> Table:
    """Texts that differ from the usual one: products, firmware. `usual` is that of most nodes of the machine type."""
    states = rows.filter((_.kind == "state") & _.text.notnull() & (_.machine != UNKNOWN))
    each = states.group_by([*_COHORT, "text"]).agg(same=_.count())
    whole = each.group_by(_COHORT).agg(nodes=_.same.sum(), most=_.same.max())
    usual = each.join(whole, _COHORT).filter((_.same == _.most) & (2 * _.most > _.nodes) & (_.nodes >= FEWEST))
    odd = states.select("node", *_COHORT, "text").join(
        usual.select(*_COHORT, "nodes", "most", usual=usual.text), _COHORT
    )
    return odd.filter(_.text != _.usual).drop("kind").order_by(["machine", "quantity", "position", "node"])


def absences(rows: Table) -> Table:
    """Devices that a node does not have at a position where most nodes of its machine type have one."""
    products = rows.filter((_.kind == "state") & (_.quantity == "product"))
    whole_reports = rows.filter((_.kind == "report") & (_.quantity != DUMPS) & (_.machine != UNKNOWN))
    reports = whole_reports.select("node", "machine")
    whole = products.semi_join(reports, "node")
    present = whole.group_by(["machine", "position"]).agg(having=_.count(), product=_.text.max())
    sizes = reports.group_by("machine").agg(nodes=_.count())
    usual = present.join(sizes, "machine").filter((2 * _.having > _.nodes) & (_.nodes >= FEWEST))
    every = reports.join(usual, "machine")
    return every.anti_join(products.select("node", "position"), ["node", "position"])


def ordered_absences(absent: Table) -> Table:
    """The absent devices by position."""
    return absent.order_by(["machine", "position", "node"])


def gaps(rows: Table, cohorts: Table) -> Table:
    """What reports could not check or corroborate, and how many of these things the fleet corroborates.

    The fleet corroborates the rate of a link that agrees with the median of at least FEWEST nodes.
    """
    large = cohorts.filter((_.kind == "link") & (_.nodes >= FEWEST)).select(*_EQUAL, "median")
    links = rows.filter(_.kind == "link").select("node", *_EQUAL, "number").join(large, _EQUAL)
    agreed = links.filter((_.number / _.median - 1).abs() < LEAST).select("node", "position").distinct()
    open_ = rows.filter(_.kind.isin(("unchecked", "uncorroborated"))).select("node", *_COHORT)
    both = open_.left_join(agreed.mutate(agreed=True), ["node", "position"])
    known = both.mutate(supported=both.agreed.notnull() & (both.quantity == PORT_RATE))
    counted = known.group_by(["machine", "kind", "quantity"]).agg(
        nodes=_.node.nunique(), things=_.count(), by_fleet=_.supported.cast("int64").sum(), example=_.node.min()
    )
    return counted.order_by(["kind", ibis.desc("nodes"), "machine", "quantity"])


def reasons(rows: Table, cohorts: Table, apart: Table, absent: Table) -> Table:
    """Why nodes need an operator: findings of their reports, values far below those of equal nodes, absent NICs.

    A NIC or port counts if equal nodes have at least half of the highest rate of its kind there: a slow management
    port costs no job. What many nodes have in common may be their kind, so it drains none of them.
    """
    fastest = cohorts.filter(_.kind == "link").group_by(["machine", "quantity"]).agg(fastest=_.median.max())
    fabric = cohorts.filter(_.kind == "link").join(fastest, ["machine", "quantity"]).filter(2 * _.median >= _.fastest)
    findings = rows.filter(_.kind == "finding").select(
        *("node", "machine", "action", "cost"),
        factor=_.number,
        source=ibis.literal("report"),
        what=_.quantity,
        position=_.position,
        text=_.text,
        value=ibis.null("float64"),
        usual=ibis.null("float64"),
    )
    low = _with_drain(apart.filter(_.share < 0))
    links = low.filter(_.kind == "link").semi_join(fabric, _EQUAL)
    counts = low.filter((_.kind == "count") & _.quantity.isin(("gpu", "nvswitch")))
    nics = fabric.filter(_.quantity == NIC_RATE).group_by(["machine", "position"]).agg(median=_.median.max())
    fewer = low.filter((_.kind == "count") & (_.quantity == "nic"))  # else a driver only gave another name
    gone = absent.join(nics, ["machine", "position"]).semi_join(fewer, "node")
    values = [_lost(table) for table in (low.filter(_.kind == "rate"), links, counts)]
    return ibis.union(findings, *values, _gone(gone)).order_by(["node", "source", "what", "position"])


def _with_drain(low: Table) -> Table:
    """The low values, and whether they are reason enough to drain the node."""
    alike = low.group_by(_EQUAL).agg(alike=_.count())
    slow = low.filter((_.kind == "rate") & (_.share <= -DRAIN)).group_by("node").agg(slow=_.count())
    known = low.join(alike, _EQUAL).left_join(slow, "node").drop("node_right")
    few = (_.alike <= FEW) | (_.alike <= FEW_SHARE * _.nodes)
    sure = (_.kind != "rate") | (_.slow >= SURE)
    return known.mutate(drain=(_.share <= -DRAIN) & few & sure)


def _lost(low: Table) -> Table:
    """The reasons of values below the median of their cohort."""
    return low.select(
        *("node", "machine"),
        action=ibis.ifelse(_.drain, "drain", "inspect"),
        cost=ibis.ifelse(_.kind == "count", "cannot run", "slower"),
        factor=ibis.ifelse((_.number > 0) & (_.kind != "count"), _.median / _.number, ibis.null("float64")),
        source=ibis.literal("fleet"),
        what=_.quantity,
        position=_.position,
        text=ibis.null("string"),
        value=_.number,
        usual=_.median,
    )


def _gone(absent: Table) -> Table:
    """The reasons of NICs of the fabric that only this node does not have."""
    return absent.select(
        *("node", "machine"),
        action=ibis.ifelse(
            (_.nodes - _.having <= FEW) | (_.nodes - _.having <= FEW_SHARE * _.nodes), "drain", "inspect"
        ),
        cost=ibis.literal("slower"),
        factor=ibis.null("float64"),
        source=ibis.literal("fleet"),
        what=ibis.literal("absent"),
        position=_.position,
        text=_.product,
        value=ibis.literal(0.0),
        usual=_.median,
    )


def ranking(causes: Table) -> Table:
    """The nodes that need an operator: those to drain first, then by their cost."""
    weighed = causes.mutate(drain=(_.action == "drain").cast("int64"), stops=(_.cost == "cannot run").cast("int64"))
    nodes = weighed.group_by(["machine", "node"]).agg(
        drain=_.drain.max(), stops=_.stops.max(), factor=_.factor.max(), reasons=_.count()
    )
    return nodes.order_by([ibis.desc("drain"), ibis.desc("stops"), ibis.desc(_.factor.fill_null(1.0)), "node"])
