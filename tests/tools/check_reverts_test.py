import subprocess

import support
from support import ToolTest


class Reverts(ToolTest):
    tool = "check_reverts.py"

    def git(self, *arguments):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments],
                       cwd=self.root, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)

    def commit(self, message, **files):
        for name, text in files.items():
            self.write(f"{name}.txt", text)
        self.git("add", "-A")
        self.git("commit", "-m", message)

    def setUp(self):
        super().setUp()
        self.git("init", "-b", "main")
        self.commit("one", a="1", b="1")
        self.git("checkout", "-b", "mine")
        self.commit("mine", mine="1")
        self.git("checkout", "main")
        self.commit("two", a="2", b="2", c="2", d="2")
        self.git("checkout", "mine")

    def test_a_rebased_branch_passes(self):
        self.git("rebase", "main")
        self.commit("more", a="3", b="3")
        self.accepts()

    def test_a_squash_without_a_rebase(self):
        self.git("reset", "--soft", "main")
        self.git("commit", "-m", "squashed")
        self.rejects("puts 4 files back to an older version: a.txt b.txt c.txt d.txt")
        self.git("commit", "--amend", "-m", "Revert two")
        self.accepts()

    def test_files_that_go(self):
        self.git("rebase", "main")
        self.git("rm", "c.txt", "d.txt")
        self.git("commit", "-m", "tidy up")
        self.rejects("puts 2 files back")
        self.git("commit", "--amend", "-m", "Remove c and d")
        self.accepts()

    def test_without_git(self):
        subprocess.run(["rm", "-rf", self.root / ".git"], check=True)
        self.accepts()


if __name__ == "__main__":
    support.main()
