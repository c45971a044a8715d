# libedit: line editing and history in the REPL. Target: svod_libedit.
find_package(PkgConfig REQUIRED)
pkg_check_modules(SVOD_LIBEDIT_PC REQUIRED IMPORTED_TARGET GLOBAL libedit>=3.1)
add_library(svod_libedit ALIAS PkgConfig::SVOD_LIBEDIT_PC)
