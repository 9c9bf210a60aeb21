"""The cache of compiled code: it is never the reason that a run fails, and it runs nobody else's code."""

import importlib.util
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from dotadd import _jit
from dotadd._util.compiled_code import EARLIER
from dotadd._util.private_store import DAY, UNUSED, PrivateStore

LOSS = (
    "from dotadd.core.losses import Loss, total_loss; import numpy as np; "
    "print(total_loss(Loss.HINGE, np.zeros(2), np.ones(2)))"
)


def run(**environment):
    return subprocess.run(
        [sys.executable, "-c", LOSS], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )


@pytest.mark.skipif(_jit.JIT_DISABLED, reason="nothing is compiled")
def test_a_cut_or_foreign_file_is_compiled_again_without_a_word_and_then_replaced(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(_jit, "STORE", PrivateStore.at(tmp_path / "kernels"))

    def found():
        """Whether a new dispatcher of the same kernel finds its machine code."""
        again = _jit.kernel(lambda x: x + 1)
        assert again(1) == 2
        return bool(again.stats.cache_hits)

    assert not found()
    (kept,) = (tmp_path / "kernels").iterdir()
    for damage in (b"", kept.read_bytes()[:200], b"cos\nsystem\n(S'echo stolen'\ntR."):
        kept.write_bytes(damage)
        assert not found()
        assert kept.stat().st_size > 1000
    assert found()
    assert capfd.readouterr() == ("", "")


def test_a_full_disk_is_told_once_with_the_folder_and_the_run_goes_on(tmp_path, monkeypatch, capfd):
    def full(self, name, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(PrivateStore, "put", full)
    monkeypatch.setattr(_jit.KernelCache, "save_error_told", False)
    monkeypatch.setattr(_jit, "STORE", PrivateStore.at(tmp_path / "kernels"))
    for added in (1, 2):
        assert _jit.kernel(lambda x, added=added: x + added)(1) == 1 + added
    said = capfd.readouterr().err
    assert said.count("No space left") == 1
    assert str(tmp_path / "kernels") in said


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners and modes are those of Unix")
def test_only_a_closed_folder_of_ones_own_is_used(tmp_path, monkeypatch):
    mine = PrivateStore.at(tmp_path / "mine")
    assert mine is not None
    assert mine.folder.stat().st_mode & 0o777 == 0o700
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    assert PrivateStore.at(tmp_path / "open") is None
    (tmp_path / "link").symlink_to(mine.folder)
    assert PrivateStore.at(tmp_path / "link") is None
    monkeypatch.setattr(os, "geteuid", lambda: mine.folder.stat().st_uid + 1)
    if mine.folder.stat().st_uid != 0:  # root's folders are trusted by everybody
        assert PrivateStore.at(mine.folder) is None


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_in_the_temporary_directory_is_not_read(tmp_path):
    stranger = tmp_path / "tmp" / "dotadd-0"
    (stranger / "kernels").mkdir(parents=True)
    os.chown(stranger / "kernels", 4711, 4711)
    blocked = tmp_path / "file"
    blocked.touch()
    environment = {"TMPDIR": str(tmp_path / "tmp"), "XDG_CACHE_HOME": str(blocked), "DOTADD_CACHE_DIR": ""}
    out = run(**environment, NUMBA_CACHE_DIR="")
    assert "no cache folder" in out.stderr
    assert not list((stranger / "kernels").iterdir())


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become somebody else")
def test_what_root_compiled_into_an_image_is_read_by_others_once_it_is_opened_to_them(request):
    image = Path(tempfile.mkdtemp())  # pytest's own folders are closed to others
    request.addfinalizer(lambda: shutil.rmtree(image))
    if not all(folder.stat().st_mode & stat.S_IXOTH for folder in image.parents):
        pytest.skip("the temporary folder is closed to others")
    image.chmod(0o755)
    store = PrivateStore.at(image / "kernels")
    store.put("some", b"code")
    code = (
        "import os; from dotadd._util.private_store import PrivateStore; os.setresuid(4711, 4711, 4711);"
        f"from pathlib import Path; store = PrivateStore.at(Path({str(store.folder)!r}));"
        "print(store and (store.get('some'), store.writable))"
    )
    told = [sys.executable, "-c", code]
    assert subprocess.run(told, capture_output=True, text=True, check=True).stdout == "None\n"
    subprocess.run(["chmod", "-R", "a+rX", str(image)], check=True)
    assert subprocess.run(told, capture_output=True, text=True, check=True).stdout == "(b'code', False)\n"


def test_what_nobody_used_for_a_month_goes(tmp_path):
    store = PrivateStore.at(tmp_path / "kernels")
    older = tmp_path / ("0123456789abcdef" + "-checked")
    older.mkdir()
    for name in ("old", "new"):
        store.put(name, b"code")
    long_ago = (store.folder / "old").stat().st_mtime - UNUSED - 60
    os.utime(store.folder / "old", (long_ago, long_ago))
    os.utime(older, (long_ago, long_ago))
    store.prune(siblings=EARLIER)
    assert store.get("old") is None
    assert store.get("new") == b"code"
    assert not older.exists()


def test_of_what_takes_too_much_room_that_goes_which_was_used_last_the_longest_ago(tmp_path):
    """The oracle: newest first, all that fits, and whatever a run of today may be about to read."""
    store = PrivateStore.at(tmp_path / "kernels")
    days = {"today": 0.5, "yesterday": 1.5, "this week": 5, "last week": 10, "long ago": 20}
    for name in reversed(days):
        store.put(name, bytes(1000))
    for name, age in days.items():
        at = (store.folder / name).stat().st_mtime - age * DAY
        os.utime(store.folder / name, (at, at))
    assert store.get("last week") is not None  # which is a use
    store.prune(siblings=EARLIER, room=3500)
    assert {path.name for path, _ in store.files()} == {"pruned", "last week", "today", "yesterday"}
    store.prune(siblings=EARLIER, room=0)  # on the same day nothing more is looked at
    assert len(store.files()) == 4
    (store.folder / "pruned").unlink()
    store.prune(siblings=EARLIER, room=0)
    assert {path.name for path, _ in store.files()} == {"pruned", "last week", "today"}


def test_a_file_that_another_process_has_removed_does_not_end_pruning(tmp_path, monkeypatch):
    store = PrivateStore.at(tmp_path / "kernels")
    for name in ("a", "b", "c"):
        store.put(name, b"code")
        at = (store.folder / name).stat().st_mtime - UNUSED - 60
        os.utime(store.folder / name, (at, at))
    seen = store.files()
    seen[0][0].unlink()
    monkeypatch.setattr(PrivateStore, "files", lambda self: seen)
    store.prune(siblings=EARLIER)
    assert [path.name for path in store.folder.iterdir()] == ["pruned"]


def recipe(tmp_path, text):
    path = tmp_path / "some_module.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("some_module", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return _jit.keeping.recipe(module.outer)


MODULE = """
from dotadd._jit import inner, kernel
LIMIT = 3
@inner
def helper(x):
    return x + 1
@kernel
def outer(x):
    return helper(x) + LIMIT
"""


@pytest.mark.skipif(_jit.JIT_DISABLED, reason="nothing is compiled")
def test_a_kernel_is_compiled_anew_exactly_if_something_it_is_made_from_changes(tmp_path):
    before = recipe(tmp_path, MODULE)
    assert recipe(tmp_path, "# a comment\n" + MODULE + "\nOTHER = 5\n") == before
    assert recipe(tmp_path, MODULE.replace("x + 1", "x + 2")) != before
    assert recipe(tmp_path, MODULE.replace("LIMIT = 3", "LIMIT = 4")) != before
    assert recipe(tmp_path, MODULE.replace("helper(x) + LIMIT", "helper(x) - LIMIT")) != before
