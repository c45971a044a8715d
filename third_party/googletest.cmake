# GoogleTest: unit tests. Targets: GTest::gtest, GTest::gmock, GTest::gmock_main.
find_package(GTest 1.12 CONFIG REQUIRED)
include(GoogleTest)
