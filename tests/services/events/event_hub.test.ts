import { expect, test, vi } from "vitest";
import { type ChangeEvent, createEventHub } from "../../../services/events/event_hub.ts";

const CHANGE: ChangeEvent = { kind: "conversation", id: "c1", revision: 3 };

test("every listener hears every event in order, until it is ended", () => {
  const hub = createEventHub();
  const heard: string[] = [];
  const endFirst = hub.subscribe(({ id }) => heard.push(`first ${id}`));
  hub.subscribe(({ id }) => heard.push(`second ${id}`));
  hub.publish({ kind: "draft", id: "a" });
  endFirst();
  endFirst();
  hub.publish({ kind: "draft", id: "b" });
  expect(heard).toEqual(["first a", "second a", "second b"]);
});

test("an event arrives as it was published", () => {
  const hub = createEventHub();
  const heard: ChangeEvent[] = [];
  hub.subscribe((event) => heard.push(event));
  hub.publish(CHANGE);
  expect(heard).toEqual([CHANGE]);
});

test("a listener that throws harms neither the publisher nor the other listeners, and is reported without content", {
  tags: ["L05"],
}, () => {
  const report = vi.spyOn(console, "error").mockImplementation(() => {});
  try {
    const hub = createEventHub();
    const heard: string[] = [];
    hub.subscribe(() => {
      throw new Error("closed stream");
    });
    hub.subscribe(({ id }) => heard.push(id));
    hub.publish(CHANGE);
    hub.publish(CHANGE);
    expect(heard).toEqual(["c1", "c1"]);
    expect(report.mock.calls[0]).toEqual([
      'An event listener failed on a change of kind "conversation": closed stream',
    ]);
  } finally {
    report.mockRestore();
  }
});

test("the same function subscribed twice is two listeners, ended one by one", () => {
  const hub = createEventHub();
  let count = 0;
  const listener = () => count++;
  const endOne = hub.subscribe(listener);
  hub.subscribe(listener);
  hub.publish(CHANGE);
  endOne();
  hub.publish(CHANGE);
  expect(count).toBe(3);
});

test("listeners may come and go while an event is being told", () => {
  const hub = createEventHub();
  const heard: string[] = [];
  hub.subscribe(() => {
    heard.push("first");
    endSecond();
    hub.subscribe(() => heard.push("late"));
  });
  const endSecond = hub.subscribe(() => heard.push("second"));
  hub.publish(CHANGE);
  expect(heard).toEqual(["first"]);
});
