"""Texts of the rules about feeding the GPU."""

from gpuwatch.diagnosis.texts.data import loader, storage, workers
from gpuwatch.diagnosis.texts.record import RuleText

TEXTS: dict[str, RuleText] = {**loader.TEXTS, **storage.TEXTS, **workers.TEXTS}
