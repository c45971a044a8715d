# ONNX's schema and protobuf: the model format that tools/onnx reads. Target: svod_onnx_proto, which
# is missing when a package is; everything but the importer is built then.
#
# The schema is compiled here rather than linked from libonnx: the lite runtime starts faster, and
# the generated code always fits the protobuf that is installed.
find_path(SVOD_ONNX_PROTO_DIR onnx.proto PATH_SUFFIXES onnx)
find_program(SVOD_PROTOC protoc)
find_package(Protobuf 3.21 QUIET)
if(SVOD_ONNX_PROTO_DIR AND SVOD_PROTOC AND TARGET protobuf::libprotobuf-lite)
  set(generated ${CMAKE_BINARY_DIR}/onnx_proto)
  file(MAKE_DIRECTORY ${generated})
  add_custom_command(
    OUTPUT ${generated}/onnx.pb.cc ${generated}/onnx.pb.h
    COMMAND ${SVOD_PROTOC} --proto_path=${SVOD_ONNX_PROTO_DIR} --cpp_out=lite:${generated}
            ${SVOD_ONNX_PROTO_DIR}/onnx.proto
    DEPENDS ${SVOD_ONNX_PROTO_DIR}/onnx.proto
    VERBATIM)
  add_library(svod_onnx_proto STATIC ${generated}/onnx.pb.cc)
  target_include_directories(svod_onnx_proto SYSTEM PUBLIC ${generated})
  target_link_libraries(svod_onnx_proto PUBLIC protobuf::libprotobuf-lite)
else()
  message(STATUS "onnx: no schema, protoc or protobuf (libonnx-dev, protobuf-compiler, "
                 "libprotobuf-dev); building without the importer")
endif()
