"""Questions of people who train models, each with the commands that the help text leads to."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from linkgauge.agent.cli.main import main

H100 = "--machine nvidia-dgx-h100"
QUESTIONS = {
    "What is the step time of llama3-70b on 64 nodes, and which layout is best?": [
        (f"plan llama3-70b {H100} --nodes 64", r"tp=\d,pp=\d,\S+ \(the fastest of .* step +[\d.]+ s;"),
        # A layout that does not fit: the error names the next command.
        (f"plan llama3-70b,tp=2 {H100} --nodes 32", r"GB on each GPU .* --sweep tries all layouts"),
        (f"plan llama3-70b {H100} --nodes 32 --sweep --top 1", r"tp=\d,pp=\d,\S+ .* 4\d% .* tensor \d+%"),
    ],
    "How long does an all_to_all take?": [
        (f"collective all_to_all --size 1G {H100} --nodes 4", r"typical +[\d.]+ ms .*"),
    ],
    "How long does a checkpoint take?": [
        (f"plan llama3-70b,ckpt=1TB {H100} --nodes 64", r"not known; describe the storage as \[\[storage\]\]"),
    ],
    "What does less recomputation gain?": [
        (f"plan llama3-70b,tp=8,zero=3,micro=8,recompute {H100} --nodes 64", r"step +[\d.]+ s;"),
        (f"plan llama3-70b,tp=8,zero=3,micro=8,recompute=40 {H100} --nodes 64", r"step +[\d.]+ s;"),
    ],
    "How many GPUs does llama3-405b need at least?": [
        (f"plan llama3-405b {H100} --nodes 4 --sweep", r"none of \d+ layouts .* alone need 81 GPUs"),
        (f"plan llama3-405b {H100} --nodes 12 --sweep --top 1", r"recompute"),
    ],
    "How long do 15T tokens take?": [
        (f"plan llama3-70b,tp=2,zero=3 {H100} --nodes 512 --train 15T", r"15T tokens take [\d.]+ days"),
    ],
    "What does a NIC at half rate cost?": [
        (f"plan llama3-8b,zero=3,gbs=512 {H100} --nodes 64", r"step +([\d.]+) (m?s);"),
        (f"plan llama3-8b,zero=3,gbs=512 {H100} --nodes 64 --network 8x200", r"step +([\d.]+) (m?s);"),
    ],
    "How do I train with sequences of 128k tokens?": [
        (f"plan llama3-70b,tp=8,cp=4,zero=3,seq=128k {H100} --nodes 32", r"context +4 .*"),
    ],
    "What does fp8 gain?": [
        (f"plan llama3-70b,tp=4,pp=4 {H100} --nodes 8", r"used +\d+% of 989 TFLOP/s"),
        (f"plan llama3-70b,tp=4,pp=4,fp8 {H100} --nodes 8", r"used +\d+% of 1979 TFLOP/s"),
    ],
    "Is my batch large enough?": [
        (
            f"plan llama3-8b,zero=3 {H100} --nodes 64",
            r"tokens .* a GPU.*; below [\d ]+ gradients",
        ),
    ],
    "How long does an all_reduce of my gradients take?": [
        (f"collective all_reduce --size 140GB {H100} --nodes 32", r"typical +\d+ ms .*"),
    ],
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_help_leads_to_an_answer(question: str) -> None:
    for line, answer in QUESTIONS[question]:
        done = CliRunner().invoke(main, line.split())
        assert re.search(answer, " ".join(done.output.split())), done.output
        assert done.exit_code == (64 if "Error" in done.output else 0)


def test_half_the_rate_takes_longer() -> None:
    lines = [line for line, _ in QUESTIONS["What does a NIC at half rate cost?"]]
    steps = [CliRunner().invoke(main, [*line.split(), "--format", "json"]).output for line in lines]
    usual = [float(re.findall(r'"usual": ([\d.]+)', text)[0]) for text in steps]
    assert usual[1] >= usual[0]
