// SPDX-License-Identifier: BSD-2-Clause
// What is behind the rdma_event_channel of a program?
#include "cm_channel.h"

namespace weft::rdmacm {

Result<std::shared_ptr<CmChannel>> CmChannel::create(std::shared_ptr<CmSpace> space) {
  auto event = os::Event::create_for_program();
  if (!event) return event.error();
  std::shared_ptr<CmChannel> channel(new CmChannel(std::move(space), std::move(event).value()));
  channel->of_program = channel;
  return channel;
}

void CmChannel::close() {
  of_program.reset();
  records_.clear();
  is_closed_ = true;
  if (readers != 0) return;  // they poll the descriptor
  event_ = os::Event();
  fd = -1;
}

void CmChannel::add(std::unique_ptr<CmEventRecord> record) {
  if (is_closed_) return;
  records_.push_back(std::move(record));
  if (!is_inherited()) event_.set();
}

// The descriptor of a parent says what waits there.
void CmChannel::clear() {
  if (!is_inherited() && !is_closed_) event_.clear();
}

std::unique_ptr<CmEventRecord> CmChannel::take() {
  std::unique_ptr<CmEventRecord> first = std::move(records_.front());
  records_.pop_front();
  if (records_.empty()) clear();
  return first;
}

void CmChannel::move(const CmId& id, CmChannel& to) {
  for (auto& each : records_) {
    if (each->target == &id) to.add(std::move(each));
  }
  const bool had = !records_.empty();
  std::erase(records_, nullptr);
  if (had && records_.empty()) clear();
}

}  // namespace weft::rdmacm
