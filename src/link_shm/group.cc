// SPDX-License-Identifier: BSD-2-Clause
// Which endpoints belong to a multicast group of this host, and how does a send reach all of them?
#include "link_shm/group.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "os/fd.h"

namespace weft::shm {
namespace {

constexpr auto kLookAgain = std::chrono::milliseconds(20);
constexpr std::size_t kFileBytes = sizeof(sockaddr_in6);

std::string name_part(const os::SocketAddress& address) {
  return address.host() + "-" + std::to_string(address.port());
}

std::string group_prefix(const os::SocketAddress& group) { return "mc-" + name_part(group) + "-"; }

// The address in a member's file. Errors: ENOENT when the member is dead, whose file goes then;
// EINVAL when the file holds none; others of SharedFile::open().
Result<os::SocketAddress> member_at(const std::string& path) {
  unsigned char bytes[kFileBytes];
  {
    const auto file = os::SharedFile::open(path);
    if (!file) return file.error();
    if (file.value()->holder(0)) {
      if (!file.value()->copy_out(0, bytes, sizeof bytes)) return Error{EINVAL, path};
      return os::SocketAddress::parse(bytes, sizeof bytes);
    }
  }
  os::SharedFile::remove_abandoned(path);
  return Error{ENOENT, path};
}

int loss_of(int error) {
  if (os::lacks_room(error)) return ENOSPC;
  return error == link::kOtherAuthorization ? error : 0;
}

}  // namespace

Result<link::Membership> join_group(const std::string& directory, const os::SocketAddress& group,
                                    const os::SocketAddress& member) {
  const std::string path = directory + "/" + group_prefix(group) + name_part(member);
  auto file = os::SharedFile::create(path, kFileBytes);
  if (!file) return file.error();
  unsigned char bytes[kFileBytes] = {};
  std::memcpy(bytes, member.get(), member.length());
  if (!file.value()->copy_in(0, bytes, sizeof bytes)) {
    return Error{ENOSPC, "no shared memory left for " + path};
  }
  if (Status ok = file.value()->publish(); !ok) return ok.error();
  return link::Membership(file.value().get(),
                          [kept = file.value()](const void*) { kept->unlink(); });
}

GroupOutbox::GroupOutbox(const Sender& sender, const os::SocketAddress& group)
    : sender_(sender), prefix_(group_prefix(group)), watch_(sender.directory) {}

void GroupOutbox::read_members() {
  const auto names = os::names_in(sender_.directory, prefix_);
  if (!names) return watch_.look_again();
  std::map<std::string, Member> members;
  for (const std::string& name : names.value()) {
    if (auto known = members_.extract(name)) {
      members.insert(std::move(known));
      continue;
    }
    const auto address = member_at(sender_.directory + "/" + name);
    if (address) {
      members[name].address = address.value();
    } else if (os::is_shortage(address.error().code)) {
      watch_.look_again();
    }
  }
  members_ = std::move(members);
}

Outbox* GroupOutbox::reach(const std::string& file, Member& member) {
  if (member.box != nullptr) return member.box.get();
  const os::Time now = os::coarse_now();
  if (now < member.look_again) return nullptr;
  auto opened = Outbox::open(sender_, member.address);
  if (opened) {
    member.box = std::move(opened).value();
    return member.box.get();
  }
  member.look_again = now + kLookAgain;
  member.loss = loss_of(opened.error().code);
  os::SharedFile::remove_abandoned(sender_.directory + "/" + file);
  return nullptr;
}

link::Outcome GroupOutbox::send(const link::SendRequest& request) {
  if (watch_.changed()) read_members();
  link::Outcome all = link::Outcome::done();
  for (auto& [file, member] : members_) {
    Outbox* box = reach(file, member);
    if (box == nullptr) {
      if (member.loss != 0) all = link::Outcome::failed(member.loss);
      continue;
    }
    const link::Outcome outcome = box->send(request);
    const bool lacks_room = os::lacks_room(outcome.error);
    if (outcome.state == link::Outcome::State::kAgain || lacks_room) all = outcome;
    if (outcome.state == link::Outcome::State::kFailed && !lacks_room) member.box.reset();
  }
  return all;
}

link::PeerState GroupOutbox::check_peer(link::FlowSink& sink) {
  for (auto& [file, member] : members_) {
    if (member.box == nullptr) continue;
    if (member.box->check_peer(sink) == link::PeerState::kAlive) continue;
    member.box.reset();
    os::SharedFile::remove_abandoned(sender_.directory + "/" + file);
  }
  return link::PeerState::kAlive;
}

}  // namespace weft::shm
