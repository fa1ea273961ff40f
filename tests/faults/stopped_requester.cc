// SPDX-License-Identifier: BSD-2-Clause
// Does an acceptance end whose requester is stopped before it confirms, and what does the requester
// hear when it goes on?
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "failure.h"
#include "fork_server.h"
#include "node.h"
#include "resources.h"
#include "switchboard.h"
#include "tests.h"

namespace weft::faults {

namespace {

// More than each deadline: FI_WEFT_PEER_TIMEOUT_MS is 1000 here, and a REP over the network is
// given up after 8 s.
constexpr unsigned kSecondsOfStop = 40;

// One side, with an event queue.
struct ConnectingSide {
  Node node{FI_EP_MSG};
  Switchboard switchboard{node};
  Owned<fid_ep> endpoint;

  ConnectingSide() {
    require_ok(node.open(0), node.failed_call());
    require_ok(switchboard.open(), switchboard.failed_call());
  }
  ~ConnectingSide() {
    endpoint.reset();
    switchboard.close();
  }
  void open(fi_info* request) {
    endpoint.reset();
    require_ok(switchboard.open_endpoint(request, endpoint), switchboard.failed_call());
  }
  void connect(const Address& listener) {
    open(nullptr);
    require_ok(switchboard.connect(*endpoint, listener, 0), switchboard.failed_call());
  }
  ConnectionEvent next() {
    std::optional<ConnectionEvent> event;
    while (!(event = switchboard.read())) node.poll();
    return std::move(*event);
  }
  ConnectionEvent expect(std::uint32_t what) {
    ConnectionEvent event = next();
    require(event.what == what, "event " + std::to_string(event.what) + " in place of " +
                                    std::to_string(what) + ", " + error_text(event.error));
    return event;
  }
};

// Its first attempt ends, whether it has heard of the acceptance or not; the second succeeds.
int live_as_requester(const Channel& channel) {
  name_this_process("requester");
  ConnectingSide side;
  Address listener{};
  require(channel.receive(&listener, sizeof listener), "the listener ended early");
  side.connect(listener);
  if (side.next().what == FI_CONNECTED) side.expect(FI_SHUTDOWN);
  side.connect(listener);
  side.expect(FI_CONNECTED);
  channel.send("", 1);
  side.expect(FI_SHUTDOWN);
  return kPassed;
}

void stop(pid_t process) {
  kill(process, SIGSTOP);
  int status = 0;
  require(waitpid(process, &status, WUNTRACED) == process && WIFSTOPPED(status),
          "the requester did not stop");
}

void accept_with(pid_t requester, const Channel& channel) {
  ConnectingSide side;
  channel.send(&side.switchboard.address(), sizeof(Address));
  const ConnectionEvent request = side.expect(FI_CONNREQ);
  stop(requester);
  side.open(request.request.get());
  require_ok(side.switchboard.accept(*side.endpoint), side.switchboard.failed_call());
  const ConnectionEvent failed = side.next();
  require(failed.what == 0 && failed.error == FI_ECONNABORTED,
          "the acceptance: event " + std::to_string(failed.what) + ", " + error_text(failed.error));
  require(failed.endpoint == &side.endpoint->fid, "the error is of another object");
  kill(requester, SIGCONT);
  side.open(side.expect(FI_CONNREQ).request.get());
  require_ok(side.switchboard.accept(*side.endpoint), side.switchboard.failed_call());
  side.expect(FI_CONNECTED);
  char connected = 0;
  while (!channel.try_receive(&connected, sizeof connected)) side.node.poll();
}

}  // namespace

int run_stopped_requester_test() {
  const std::string directory = make_runtime_directory("stop-requester");
  const Watchdog watchdog("an acceptance whose requester is stopped", kSecondsOfStop);
  Channel here;
  Channel there;
  Channel::make_pair(here, there);
  const pid_t process = fork();
  require(process >= 0, "fork");
  if (process == 0) {
    here.close();
    std::exit(live_as_requester(there));
  }
  there.close();
  name_this_process("acceptor");
  accept_with(process, here);
  int status = 0;
  waitpid(process, &status, 0);
  require(status == 0, "the requester ended with status " + std::to_string(status));
  std::string left;
  const std::size_t files = files_below(directory, &left);
  require(files == 0, "files are left in the runtime directory:\n" + left);
  std::filesystem::remove_all(directory);
  return kPassed;
}

}  // namespace weft::faults
