"""Atomic writing of files."""

import errno
import os
import stat
from pathlib import Path

import pytest

from diffrac_cvx.machine.writing import atomic_file, escape_control, write_text


def test_what_fails_in_the_middle_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "t.txt"
    write_text(path, "old")

    def write_half(error):
        with atomic_file(path) as part:
            part.write_text("half of the n")
            raise error

    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error):
            write_half(error)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["t.txt"]


def test_the_file_that_cannot_be_written_is_named_and_not_its_temporary_one(tmp_path):
    with pytest.raises(OSError, match="No such file") as caught:
        write_text(tmp_path / "no" / "t.txt", "x")
    assert caught.value.filename == str(tmp_path / "no" / "t.txt")
    with pytest.raises(OSError, match="No space") as caught, atomic_file(tmp_path / "t.txt"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert caught.value.filename == str(tmp_path / "t.txt")
    with pytest.raises(OSError, match="other") as caught, atomic_file(tmp_path / "t.txt"):
        raise FileNotFoundError(errno.ENOENT, "other", "elsewhere")
    assert caught.value.filename == "elsewhere"


def test_links_and_rights_stay_and_a_new_file_has_the_usual_ones(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    write_text(tmp_path / "a", "x")
    (tmp_path / "b").write_text("x")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_what_is_no_file_is_written_to_as_it_is():
    write_text(Path(os.devnull), "x")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_a_terminal_is_given_no_escape_sequences():
    assert escape_control("a\x1b[31mb\u202ec\td\ne") == "a\\x1b[31mb\\u202ec\td\ne"
    assert escape_control("naïve κ 名") == "naïve κ 名"
