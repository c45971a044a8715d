# oneTBB: the executor's task arenas. Target: TBB::tbb, to be linked PRIVATE by executor/ alone.
find_package(TBB 2021.8 CONFIG REQUIRED COMPONENTS tbb)
