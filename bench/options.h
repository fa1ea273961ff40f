// SPDX-License-Identifier: BSD-2-Clause
// What is measured: the command line of weft_bench as one struct.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace weft::bench {

enum class Operation { kMessage, kTagged, kRmaWrite, kRmaRead, kFetchAdd, kCompareSwap };

// FI_EP_RDM, FI_EP_MSG or FI_EP_DGRAM.
enum class EndpointType { kReliable, kConnected, kDatagram };

enum class Metric {
  kLatency,  // two-sided: half a ping-pong round trip; one-sided: post to completion, one at a time
  kPollLatency,  // rma_write only: ping-pong by writes, each target spins on the last byte
  kRate,         // operations per second, a window of them in flight
  kBandwidth,    // the same, reported as bytes per second
  kConnect,      // connections that one process makes with another
  kMesh,         // connections that many processes make with each other, all at once
};

enum class Completion { kDefault, kInject, kTransmit, kDelivery };

// Whether small messages go through fi_inject (no completion) or fi_send.
enum class Inject { kAuto, kNever, kAlways };

// Whether each message has a posted buffer of its own, or large ones take many (FI_MULTI_RECV).
enum class Receive { kSingle, kMulti };
inline constexpr std::size_t kMultiReceiveBytes = std::size_t{1} << 20;  // of each large one

// Where the program sees that operations have completed: in a completion queue, or in two counters.
enum class CountBy { kQueue, kCounters };

// What drives the provider: the measuring thread, or also a thread of the provider.
enum class Progress { kManual, kAuto };

// The promise of the program about its threads (fi_domain(3)).
enum class Threading { kSafe, kFid, kEndpoint, kCompletion, kDomain };

enum class Role {
  kPair,           // forks the server itself and is the client
  kServer,         // --listen
  kClient,         // --connect
  kSelf,           // --self: each thread sends to its own endpoint
  kListProviders,  // --list-providers
};

struct Options {
  Role role = Role::kPair;
  std::string provider;  // empty: whatever libfabric lists first
  EndpointType endpoint = EndpointType::kReliable;
  Operation operation = Operation::kTagged;
  Metric metric = Metric::kLatency;
  std::size_t size = 8;          // bytes of one message
  std::uint64_t window = 0;      // operations in flight; 0: by size, see default_window()
  std::size_t buffers = 1;       // distinct buffers that successive operations go through
  double seconds = 0.1;          // aimed-at duration of one repetition
  unsigned repetitions = 5;      // the reported figure is their median
  std::uint64_t iterations = 0;  // of one repetition; 0: found by calibration
  unsigned time_limit = 20;      // seconds until both processes are ended
  Completion completion = Completion::kDefault;
  Inject inject = Inject::kAuto;
  Progress progress = Progress::kManual;
  Threading threading = Threading::kDomain;
  unsigned threads = 1;  // kSelf: in one domain
  Receive receive = Receive::kSingle;
  CountBy count_by = CountBy::kQueue;
  unsigned peers = 1;  // processes met; the measurement is made with one, the others are idle
  std::size_t connections = 1024;  // kConnect: beside the first one
  std::size_t under_way = 32;      // kConnect and kMesh: that a process makes at once
  std::size_t processes = 100;     // kMesh
  std::size_t reach = 0;  // kMesh: so many next ones each connects to in a ring; 0: half of them
  std::optional<std::pair<int, int>> cores;  // server, client; none: first and last allowed
  std::string address;                       // local address to bind; empty: the provider's choice
  std::string server_address;                // the same for servers that this process forks
  std::string server_network;                // file of the network namespace that those move to
  std::string host;                          // --connect: where the server listens
  std::uint16_t port = 0;                    // --listen and --connect: the control connection
};

// Reads the command line. Prints the error or the help text and ends the process (CLI11's exit
// codes) when it is not a measurement that can be made.
Options parse_options(int argc, char** argv);

// Enough in flight to hide the latency, without more memory than a cache level per direction.
std::uint64_t default_window(std::size_t size);

bool is_one_sided(Operation operation);
bool makes_connections(Metric metric);
bool is_atomic(Operation operation);

// The names used on the command line and in the report.
const char* name_of(Operation operation);
const char* name_of(Metric metric);
const char* name_of(EndpointType type);
const char* name_of(Receive receive);
const char* name_of(CountBy count_by);
const char* name_of(Threading threading);

}  // namespace weft::bench
