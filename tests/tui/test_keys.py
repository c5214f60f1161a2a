"""The table of keys: unique, complete, within the rules."""

from collections import Counter

import pytest

from gpuwatch.tui.keys import KEYS, Where, bindings, commands, footer, help_rows


@pytest.mark.parametrize("where", [Where.MAIN, Where.DIALOG])
def test_no_key_means_two_things_in_one_place(where: Where) -> None:
    counts = Counter(key for key, _ in bindings(where))
    assert [key for key, count in counts.items() if count > 1] == []


def test_every_key_of_the_plan_is_there() -> None:
    main = {key for key, _ in bindings(Where.MAIN)}
    wanted = (
        "q ctrl+c ctrl+q ctrl+z question_mark h f1 space p n N enter tab shift+tab up down left right j k l"
    )
    wanted += " z g G home end left_square_bracket right_square_bracket left_curly_bracket"
    wanted += " right_curly_bracket plus minus comma full_stop slash f c a e y m T ctrl+p ctrl+l"
    assert set(wanted.split()) | set("12345678") <= main


def test_going_back_never_needs_escape() -> None:
    back = {key for key, action in bindings(Where.DIALOG) if action == "back"}
    assert back == {"escape", "q", "backspace"}


def test_multiplexer_prefixes_and_alt_stay_free() -> None:
    used = {key for where in Where for key, _ in bindings(where)}
    assert not used & {"ctrl+a", "ctrl+b"}
    assert not any("alt" in key for key in used)


def test_function_keys_and_escape_are_never_the_only_way() -> None:
    for row in KEYS:
        assert any(key != "escape" and not key.startswith("f1") for key in row.keys), row.action


def test_footer_fits_its_words_and_begins_with_help() -> None:
    main = footer(Where.MAIN)
    assert main[:2] == [("?", "help"), ("q", "quit")]
    assert len(main) == len(set(main))
    assert footer(Where.DIALOG)[:2] == [("?", "help"), ("esc q", "back")]


def test_help_names_every_action_once() -> None:
    rows = help_rows()
    assert len(rows) == len(set(rows))
    assert {(row.shown, row.help) for row in KEYS} == {(shown, text) for _, shown, text in rows}


def test_every_text_is_plain_ascii() -> None:
    for row in KEYS:
        assert (row.shown + row.label + row.help + row.foot_shown).isascii()


def test_palette_offers_no_movement() -> None:
    actions = {row.action for row in commands()}
    assert "freeze" in actions
    assert not any(action.startswith(("row", "side", "back")) for action in actions)
