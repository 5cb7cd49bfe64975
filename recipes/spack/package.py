# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyUnisono(PythonPackage):
    """Unisono plans, proves, predicts and runs collective communication."""

    pypi = "unisono/unisono-0.1.0.tar.gz"

    license("Apache-2.0")

    version("0.1.0", sha256="0000000000000000000000000000000000000000000000000000000000000000")

    variant("mpi", default=True, description="Measure, tune and run MPI programs")

    depends_on("c", type="build")

    depends_on("python@3.11:", type=("build", "link", "run"))
    depends_on("py-maturin@1.9:1", type="build")
    depends_on("rust@1.89:", type="build")

    depends_on("py-click@8.2:8", type=("build", "run"))
    depends_on("py-matplotlib@3.10:3", type=("build", "run"))
    depends_on("py-numpy@2.1:2", type=("build", "run"))
    depends_on("py-rich@14:15", type=("build", "run"))
    depends_on("py-tomli-w@1", type=("build", "run"))

    with when("+mpi"):
        depends_on("mpi", type="run")
        depends_on("py-mpi4py@4.1:4", type="run")

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def demo(self):
        with working_dir("spack-test", create=True):
            Executable(self.prefix.bin.unisono)("demo")
