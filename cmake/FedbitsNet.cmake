# Server and clients as processes (net/): Boost.Asio carries frames, OpenSSL protects them, Protocol Buffers say what their headers mean.
find_package(Boost 1.81 REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)
find_package(Protobuf REQUIRED)

set(wire ${CMAKE_BINARY_DIR}/wire)
file(MAKE_DIRECTORY ${wire})
add_custom_command(OUTPUT ${wire}/wire.pb.cc ${wire}/wire.pb.h
  COMMAND protobuf::protoc --cpp_out=${wire} --proto_path=${CMAKE_CURRENT_SOURCE_DIR}/net/proto wire.proto
  DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/net/proto/wire.proto VERBATIM)
add_library(wire OBJECT ${wire}/wire.pb.cc)
target_include_directories(wire SYSTEM PUBLIC ${wire})
target_link_libraries(wire PUBLIC protobuf::libprotobuf-lite)

fedbits_part(net)
target_link_libraries(net PUBLIC wire OpenSSL::SSL OpenSSL::Crypto)
target_include_directories(net SYSTEM PUBLIC ${Boost_INCLUDE_DIRS})
target_compile_definitions(net PRIVATE BOOST_ASIO_NO_DEPRECATED)
target_compile_options(net PRIVATE -O1)  # waits for sockets, and is long to compile
# GCC 12 reports a mismatch between operators new and delete in coroutines of Boost.Asio that there is not.
target_compile_options(net PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-mismatched-new-delete>)
# g++ 12 does not see that a coroutine of Asio allocates its frame with the operator that belongs to its operator delete.
target_compile_options(net PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-mismatched-new-delete>)
set(FL_NET_PARTS net wire)
