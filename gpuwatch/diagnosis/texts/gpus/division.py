"""Texts of the rules about how a job divides its work over GPUs."""

from gpuwatch.diagnosis.interface import Fires
from gpuwatch.diagnosis.texts.record import RuleText
from gpuwatch.diagnosis.texts.words import facts, lines, number, percent
from gpuwatch.diagnosis.window import Window
from gpuwatch.language import say
from gpuwatch.model import FindingText


def _dp(fires: Fires, window: Window) -> FindingText:
    idle, count = number(fires.parameters, "idle") or 0.0, round(number(fires.parameters, "count") or 0)
    turns = fires.variant == "turns"
    return FindingText(
        title=say("the GPUs take turns: layers of one model on several cards")
        if turns
        else say("one process drives {count} GPUs (DataParallel style)", count=count),
        because=lines(
            say(
                "process {pid} holds memory on all {count}",
                pid=round(number(fires.parameters, "pid") or 0),
                count=count,
            ),
            say("the others idle {share} of the time", share=percent(idle)),
        ),
        wrong_if=say("the model is split over the cards because it does not fit on one"),
        settle=say("the same batch with DistributedDataParallel: steps per second"),
        advice=(
            say("torchrun with DistributedDataParallel, one process for each GPU"),
            say("check batch size and learning rate again"),
        ),
        short_advice=say("DistributedDataParallel"),
    )


def _uneven(fires: Fires, window: Window) -> FindingText:
    low, high = str(fires.parameters["low"]), str(fires.parameters["high"])
    spread, found = number(fires.parameters, "spread") or 0.0, facts(fires)
    return FindingText(
        title=say("{low} works less than {high}", low=low, high=high),
        because=lines(
            say(
                "utilization {low} against {high}, {points} points apart",
                low=percent(found.get("low_ratio", 0.0)),
                high=percent(found.get("high_ratio", 0.0)),
                points=round(spread * 100),
            )
        ),
        wrong_if=say("the stages of a pipeline differ by design"),
        settle=say("log batch size and step time of each rank"),
        advice=(
            say("look at shards and batch size of each rank"),
            say("rank 0 extras: logging, evaluation"),
            say("the same model of card throughout a job"),
        ),
        short_advice=say("compare shards and batches of ranks"),
    )


def _way(fires: Fires, window: Window) -> FindingText:
    pair, what = str(fires.parameters.get("pair", "")), str(fires.parameters.get("what", ""))
    titles = {
        "links": say(
            "{gpu} has {up} of {expected} NVLinks up",
            gpu=str(fires.parameters.get("gpu", "")),
            up=round(number(fires.parameters, "up") or 0),
            expected=round(number(fires.parameters, "expected") or 0),
        ),
        "switched-off": say("the direct path between the GPUs is switched off ({what})", what=what),
        "no-access": say("{pair} cannot reach each other's memory: {what}", pair=pair, what=what),
        "far": say("{pair} talk over the whole system", pair=pair),
    }
    return FindingText(
        title=titles[fires.variant],
        because=lines(say("traffic between the GPUs goes through the host")),
        wrong_if=say("it is meant to be so on this kind of card or machine"),
        settle=say("nvidia-smi topo -m, and nvidia-smi nvlink -s"),
        advice=(
            say("seat the bridge; nvidia-smi nvlink -s"),
            say("IOMMU and PCIe access control settings"),
            say("ranks on one switch or socket; unset NCCL_P2P_DISABLE"),
        ),
        short_advice=say("nvidia-smi nvlink -s"),
    )


def _unused(fires: Fires, window: Window) -> FindingText:
    names = str(fires.parameters["names"])
    return FindingText(
        title=say("the job holds {names} and does not use it", names=names),
        because=lines(
            say("nothing ran there for 5 min"),
            say(
                "the busiest GPU of the job works {share}", share=percent(facts(fires).get("busy_ratio", 0.0))
            ),
        ),
        wrong_if=say("it is kept for evaluation or as a spare"),
        settle=say("print the device of each rank"),
        advice=(
            say("one rank for each card: torchrun --nproc-per-node"),
            say("or release the card"),
            say("check the device index in the code"),
        ),
        short_advice=say("one rank for each card, or release"),
    )


TEXTS: dict[str, RuleText] = {
    "dp-single-process": RuleText(
        title="one process drives several cards",
        label="DataParallel",
        render=_dp,
        sees="A single process with memory on several GPUs, and how evenly they work.",
        decides="One pid with 500 MiB or more on each of the GPUs, no rank in its environment, and the first GPU 15 points "
        "busier or 15 % fuller than the others; or GPUs that take turns. A warning when the others idle 15 % or more.",
        unlike="Ranks of DistributedDataParallel are one process each; their contexts on GPU 0 are small.",
        steps=(
            "torchrun with DistributedDataParallel, one process for each GPU.",
            "Check batch size and learning rate again.",
        ),
        wrong_if="the model is split over the cards because it does not fit on one.",
        settle="the same batch with DistributedDataParallel.",
        sources="PyTorch Kineto flags it too; numbers are our own.",
    ),
    "gpu-imbalance": RuleText(
        title="uneven work",
        label="uneven",
        render=_uneven,
        sees="The mean utilization of the GPUs of one job, all of the same model.",
        decides="20 points between the most and the least busy over a minute (ends below 12); a warning from 35. Below that "
        "only a state while the least busy one works steadily at 70 % or more.",
        unlike="A late card makes the others spin, so their utilization is equal; pipeline stages are uneven by design.",
        steps=(
            "Look at shards and batch size of each rank.",
            "Rank 0 extras: logging, evaluation.",
            "The same model of card throughout a job.",
        ),
        wrong_if="the stages of a pipeline differ by design.",
        settle="log batch size and step time of each rank.",
        sources="35 points: trainpulse; the rest is our own.",
    ),
    "p2p-or-nvlink-down": RuleText(
        title="no direct path between the cards",
        label="NVLink, P2P",
        render=_way,
        sees="NVLinks that are up, what the driver says of peer access, and switches in the environment.",
        decides="Fewer links than the card has or its peers (1 suffices) is a warning; NCCL_P2P_DISABLE=1 and missing peer access "
        "a notice; on consumer cards, which have none by design, a state.",
        unlike="Cards without peer access by design; virtual machines.",
        steps=(
            "Seat the bridge; nvidia-smi nvlink -s.",
            "IOMMU and PCIe access control settings.",
            "Ranks on one switch or socket; unset NCCL_P2P_DISABLE.",
        ),
        wrong_if="it is meant to be so on this kind of card or machine.",
        settle="nvidia-smi topo -m, and nvidia-smi nvlink -s.",
        sources="Links as NVIDIA DCGM counts them; the essay; the rest is our own.",
    ),
    "gpus-unused": RuleText(
        title="cards of the job without work",
        label="unused cards",
        render=_unused,
        sees="GPUs on which the job holds memory and runs nothing.",
        decides="Below 3 % for 5 min while another GPU of the job is at 50 % or more.",
        unlike="A card kept for evaluation; a pipeline that is still filling.",
        steps=(
            "One rank for each card: torchrun --nproc-per-node.",
            "Or release the card.",
            "Check the device index in the code.",
        ),
        wrong_if="it is kept for evaluation or as a spare.",
        settle="print the device of each rank.",
        sources="Idle shares as in Princeton's jobstats; 5 min are our own.",
    ),
}
