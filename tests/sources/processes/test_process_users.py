from fake_tree import FakeTree

from gpuwatch.sources.processes.users import UserNames

PASSWD = b"root:x:0:0:root:/root:/bin/sh\nanna:x:1000:1000::/home/anna:/bin/sh\nbroken\n:x:7:7\nb:x:y:1\n"


def test_names_from_the_file_without_asking():
    names = UserNames(FakeTree({"/etc/passwd": PASSWD}), resolve=lambda uid: 1 / 0)
    assert names.name(0) == "root"
    assert names.name(1000) == "anna"


def test_b068_directory_users_are_asked_for_one_at_a_time_and_never_waited_for():
    tasks = []
    asked = []

    def resolve(uid):
        asked.append(uid)
        return "王芳" if uid == 5001 else None

    names = UserNames(FakeTree(), resolve, tasks.append)
    assert names.name(5001) == "5001"  # the directory has not answered yet
    assert names.name(5001) == "5001"
    assert len(tasks) == 1
    tasks[0]()
    assert names.name(5001) == "王芳"
    assert asked == [5001]


def test_b067_unknown_id_stays_a_number_and_is_asked_for_once():
    tasks = []
    names = UserNames(FakeTree(), lambda uid: None, tasks.append)
    assert names.name(70001) == "70001"
    tasks[0]()
    assert names.name(70001) == "70001"
    assert len(tasks) == 1


def test_control_characters_in_names_do_not_pass():
    names = UserNames(FakeTree(), lambda uid: "a\x1b[2Jb", lambda task: task())
    assert "\x1b" not in names.name(5)
