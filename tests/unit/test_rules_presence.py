"""rules/presence: what is a sign of life, and when there has been none for too long."""

from pursersd.rules.presence import Presence

LIMIT = 10.0


def test_a_call_is_activity_from_its_start_to_its_end_and_resets_the_clock() -> None:
    presence = Presence(0.0)
    assert (presence.is_active(10.0, LIMIT), presence.is_active(10.1, LIMIT)) == (True, False)
    presence.began(50.0)
    assert presence.is_active(1e6, LIMIT)
    assert presence.idle_at(LIMIT) == float("inf")
    presence.ended(70.0)
    assert presence.idle_at(LIMIT) == 80.0


def test_of_several_calls_the_last_one_counts() -> None:
    presence = Presence(0.0)
    presence.began(1.0)
    presence.began(2.0)
    presence.ended(3.0)
    assert presence.is_active(1e6, LIMIT)
    presence.ended(4.0)
    assert presence.idle_at(LIMIT) == 14.0


def test_who_waits_and_calls_at_once_does_not_only_wait() -> None:
    presence = Presence(0.0)
    presence.began(1.0)
    assert (presence.is_waiting, presence.is_busy) == (False, True), "it has only begun"
    presence.wait_began()
    assert (presence.is_waiting, presence.is_busy) == (True, False)
    presence.began(2.0)
    assert (presence.is_waiting, presence.is_busy) == (False, True)
    presence.ended(3.0)
    assert (presence.is_waiting, presence.is_busy, presence.waits) == (True, False, 1)
    presence.wait_ended()
    presence.ended(4.0)
    assert (presence.is_waiting, presence.is_busy, presence.waits) == (False, False, 0)


def test_silence_under_an_earlier_daemon_counts() -> None:
    presence = Presence(100.0)
    presence.resumed(95.0)
    assert presence.idle_at(LIMIT) == 105.0


def test_an_open_form_is_no_work_but_its_answer_is_a_sign_of_life() -> None:
    presence = Presence(0.0)
    presence.began(1.0)
    presence.forms_changed(2.0, 1)
    assert presence.idle_at(LIMIT) == 12.0
    assert (presence.is_busy, presence.is_waiting) == (True, False), "its Central is still in use"
    presence.began(3.0)
    assert presence.idle_at(LIMIT) == float("inf"), "another call works"
    presence.ended(4.0)
    assert presence.idle_at(LIMIT) == 14.0
    presence.forms_changed(50.0, -1)
    assert presence.idle_at(LIMIT) == float("inf"), "the call goes on with the answer"
    presence.ended(51.0)
    assert presence.idle_at(LIMIT) == 61.0
