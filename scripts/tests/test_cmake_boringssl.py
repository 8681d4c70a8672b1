"""The CMake of this workspace's builds patches one source, once, and lets everything else through."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[1] / "cmake-boringssl"
PATCH = """What it is for.

diff --git a/include/openssl/ssl.h b/include/openssl/ssl.h
--- a/include/openssl/ssl.h
+++ b/include/openssl/ssl.h
@@ -1,2 +1,3 @@
 one
+#define MIMUS_CLIENT_HELLO 1
 two
"""


class Wrapper(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        for name in ["scripts", "patches", "bin", "out/boringssl/include/openssl"]:
            (self.root / name).mkdir(parents=True)
        self.script = self.root / "scripts" / SCRIPT.name
        shutil.copy(SCRIPT, self.script)
        self.patch = self.root / "patches/boringssl-client-hello.patch"
        self.patch.write_text(PATCH)
        self.header = self.root / "out/boringssl/include/openssl/ssl.h"
        self.header.write_text("one\ntwo\n")
        cmake = self.root / "bin/cmake"
        cmake.write_text('#!/bin/sh\nprintf "cmake: %s\\n" "$*"\nexit "${STATUS:-0}"\n')
        cmake.chmod(0o755)

    def run_it(self, *arguments, **env):
        path = f"{self.root / 'bin'}:{os.environ['PATH']}"
        crate = {"CARGO_PKG_NAME": "boring-sys", "CARGO_PKG_VERSION": "5.4.0", "OUT_DIR": str(self.root / "out")}
        env = {"PATH": path, "HOME": str(self.root), **crate, **env}
        return subprocess.run([self.script, *arguments], env=env, capture_output=True, text=True, check=False)

    def configure(self, **env):
        return self.run_it(str(self.root / "out/boringssl"), "-B", "build", **env)

    def test_patches_before_cmake_and_has_cargo_watch_the_patch(self):
        done = self.configure()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.header.read_text(), "one\n#define MIMUS_CLIENT_HELLO 1\ntwo\n")
        lines = done.stdout.splitlines()
        self.assertIn(f"cargo:rerun-if-changed={self.patch}", lines)
        self.assertIn(f"cargo:rerun-if-changed={self.script}", lines)
        self.assertEqual(lines[-1], f"cmake: {self.root}/out/boringssl -B build")

    def test_configuring_again_patches_once(self):
        self.configure()
        self.assertEqual(self.configure().returncode, 0)
        self.assertEqual(self.header.read_text().count("MIMUS"), 1)

    def test_works_while_a_hook_of_another_repository_builds(self):
        other = str(self.root / "other.git")
        self.assertEqual(self.configure(GIT_DIR=other, GIT_INDEX_FILE=f"{other}/index").returncode, 0)
        self.assertIn("MIMUS", self.header.read_text())

    def test_a_source_that_does_not_fit_fails_the_build(self):
        self.header.write_text("three\n")
        done = self.configure()
        self.assertEqual(done.returncode, 1)
        self.assertIn("does not fit the source of boring-sys 5.4.0", done.stderr)
        self.assertNotIn("cmake:", done.stdout)

    def test_others_pass_through(self):
        for env in [{"CARGO_PKG_NAME": "aws-lc-sys"}, {"CARGO_PKG_VERSION": "4.22.0"}, {"OUT_DIR": "/elsewhere"}]:
            done = self.configure(**env)
            self.assertEqual(done.stdout, f"cmake: {self.root}/out/boringssl -B build\n")
        self.assertEqual(self.run_it("--version").stdout, "cmake: --version\n")
        self.assertEqual(self.header.read_text(), "one\ntwo\n")

    def test_a_missing_tool_is_named_and_what_to_do(self):
        for name, env in [("/nowhere/cmake", {"MIMUS_CMAKE": "/nowhere/cmake"}), ("git", {"PATH": str(self.without("git"))})]:
            done = self.configure(**env)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"{name} is missing", done.stderr)
            self.assertIn("make deps", done.stderr)

    def without(self, tool):
        """A path with what the script needs but `tool`."""
        tools = self.root / "tools"
        tools.mkdir()
        for name in {"cmake", "dirname", "grep", "git"} - {tool}:
            (tools / name).symlink_to(self.root / "bin/cmake" if name == "cmake" else shutil.which(name))
        return tools

    def test_the_status_is_that_of_cmake(self):
        self.assertEqual(self.run_it("--build", "x", STATUS="3").returncode, 3)


if __name__ == "__main__":
    unittest.main()
