// SPDX-License-Identifier: BSD-2-Clause
// What is behind the rdma_event_channel of a program?
#include "cm_channel.h"

namespace weft::rdmacm {

Result<std::unique_ptr<CmChannel>> CmChannel::create(std::shared_ptr<CmSpace> space) {
  auto event = os::Event::create_for_program();
  if (!event) return event.error();
  return std::unique_ptr<CmChannel>(new CmChannel(std::move(space), std::move(event).value()));
}

void CmChannel::add(std::unique_ptr<CmEventRecord> record) {
  records_.push_back(std::move(record));
  event_.set();
}

void CmChannel::put_back(std::unique_ptr<CmEventRecord> record) {
  records_.push_front(std::move(record));
  event_.set();
}

std::unique_ptr<CmEventRecord> CmChannel::take() {
  if (records_.empty()) return nullptr;
  std::unique_ptr<CmEventRecord> first = std::move(records_.front());
  records_.pop_front();
  if (records_.empty()) event_.clear();
  return first;
}

void CmChannel::move(const CmId& id, CmChannel& to) {
  for (auto& each : records_) {
    if (each->target == &id) to.add(std::move(each));
  }
  const bool had = !records_.empty();
  std::erase(records_, nullptr);
  if (had && records_.empty()) event_.clear();
}

void CmChannel::close() {
  records_.clear();
  if (readers != 0) return;  // they poll the descriptor
  event_ = os::Event();
  fd = -1;
}

}  // namespace weft::rdmacm
