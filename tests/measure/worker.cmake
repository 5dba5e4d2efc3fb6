# A worker program with synthetic contestants, and a plug-in, for tests/measure.
add_executable(measure_worker measure/worker/worker.cpp)
target_link_libraries(measure_worker PRIVATE tw_measure)
add_library(measure_peer MODULE measure/worker/peer.cpp)
target_include_directories(measure_peer PRIVATE ${CMAKE_SOURCE_DIR})
set_target_properties(measure_peer PROPERTIES PREFIX "")
add_dependencies(test_measure measure_worker measure_peer)
target_compile_definitions(test_measure PRIVATE
  TW_WORKER="$<TARGET_FILE:measure_worker>" TW_PEER="$<TARGET_FILE:measure_peer>")
