# Google Benchmark: timing loops of svod-bench. Target: benchmark::benchmark.
find_package(benchmark 1.7 CONFIG REQUIRED)
