// driver CONFIG FOLDER MODE < events: the steps and transfers of a plan, the transfers carried out by DRAMsim3.
//
// The events are numbers: picoseconds of a tick; steps, and ticks of each; transfers, and of each the event that lets it
// begin and the one that waits for its end (hwmodels/timeline/schedule.py: 2 t is room for step t, 2 t + 1 its begin),
// 1 if it writes, its ticks as planned, ticks of its calls, and runs of addresses, first byte and bytes each. MODE is
//   planned  every transfer takes its ticks as planned: the latency must be that of the plan
//   whole    after the ticks of its calls a transfer requests the lines of its runs, one a clock while the controller
//            accepts them, and ends when the last one is read, or is accepted if it writes; steps wait for it
//   alone    the same, each transfer behind the one before, whatever the steps do
// The answer: latency and the sum of all transfers in picoseconds, lines read and written.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "dramsim3.h"

namespace {

typedef int64_t Time;  // picoseconds

struct Transfer {
    int64_t begins, awaits, write;
    Time ticks, call;
    std::vector<std::pair<uint64_t, uint64_t>> runs;
};

class Dram {
   public:
    Dram(const std::string &config, const std::string &folder) {
        auto done = [this](uint64_t) { --pending_; };
        system_ = dramsim3::GetMemorySystem(config, folder, done, done);
        clock_ = std::llround(system_->GetTCK() * 1000);
        line_ = system_->GetBusBits() / 8 * system_->GetBurstLength();
    }

    // When a transfer ends that begins at a time, no earlier than what was moved before it has ended.
    Time move(Time at, const Transfer &one) {
        while (now() < at + one.call) tick();
        uint64_t before = UINT64_MAX;
        for (const auto &run : one.runs) {
            for (uint64_t line = run.first / line_; line <= (run.first + run.second - 1) / line_; ++line) {
                if (line == before) continue;  // two runs have a part of it each
                while (!system_->WillAcceptTransaction(line * line_, one.write)) tick();
                system_->AddTransaction(line * line_, one.write);
                ++pending_;
                ++lines[one.write];
                before = line;
                tick();
            }
        }
        while (pending_) tick();
        return now();
    }

    int64_t lines[2] = {0, 0};

   private:
    Time now() const { return cycle_ * clock_; }
    void tick() {
        system_->ClockTick();
        ++cycle_;
    }

    dramsim3::MemorySystem *system_;
    Time clock_;
    uint64_t line_;
    int64_t cycle_ = 0, pending_ = 0;
};

int64_t number() {
    int64_t value;
    if (!(std::cin >> value)) {
        std::cerr << "the events end too early" << std::endl;
        std::exit(1);
    }
    return value;
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 4) {
        std::cerr << "driver CONFIG FOLDER planned|whole|alone < events" << std::endl;
        return 2;
    }
    const std::string mode = argv[3];
    Dram dram(argv[1], argv[2]);
    const Time tick = number();
    std::vector<Time> steps(number());
    for (auto &step : steps) step = number() * tick;
    std::vector<Transfer> transfers(number());
    for (auto &one : transfers) {
        one.begins = number(), one.awaits = number(), one.write = number();
        one.ticks = number() * tick, one.call = number() * tick;
        one.runs.resize(number());
        for (auto &run : one.runs) run.first = number(), run.second = number();
    }

    // The queue moves one transfer after the other, so each can be carried out as soon as it is known when it begins.
    std::vector<Time> late(2 * steps.size() + 3, 0);
    Time now = 0, queue = 0, sum = 0;
    size_t next = 0;
    for (size_t event = 2; event < late.size(); ++event) {
        while (next < transfers.size() && transfers[next].begins <= int64_t(event)) {
            const Transfer &one = transfers[next++];
            const Time begin = mode == "alone" ? queue : std::max(queue, now);
            queue = mode == "planned" ? begin + one.ticks : dram.move(begin, one);
            sum += queue - begin;
            late[one.awaits] = std::max(late[one.awaits], queue);
        }
        now = std::max(now, late[event]);
        if (event % 2) now += steps[event / 2 - 1];
    }
    std::cout << std::max(now, queue) << " " << sum << " " << dram.lines[0] << " " << dram.lines[1] << std::endl;
    return 0;
}
