import { expect, test } from "vitest";
import { type ChangeEvent, createEventHub } from "../../../services/events/event_hub.ts";

const CHANGE: ChangeEvent = { kind: "conversation", id: "c1", revision: 3 };

test("every listener gets every event in order, until it is removed", () => {
  const hub = createEventHub(() => {});
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
  const hub = createEventHub(() => {});
  const heard: ChangeEvent[] = [];
  hub.subscribe((event) => heard.push(event));
  hub.publish(CHANGE);
  expect(heard).toEqual([CHANGE]);
});

test("a listener that throws doesn't affect the publisher or other listeners, and is logged without content", {
  tags: ["L05"],
}, () => {
  const lines: unknown[] = [];
  const hub = createEventHub((...line) => lines.push(line));
  const heard: string[] = [];
  hub.subscribe(() => {
    throw new Error("closed stream");
  });
  hub.subscribe(({ id }) => heard.push(id));
  hub.publish(CHANGE);
  hub.publish(CHANGE);
  expect(heard).toEqual(["c1", "c1"]);
  expect(lines[0]).toEqual([
    "error",
    "An event listener failed",
    { kind: "conversation", error: "closed stream" },
  ]);
});

test("the same function subscribed twice is two listeners, which are removed separately", () => {
  const hub = createEventHub(() => {});
  let count = 0;
  const listener = () => count++;
  const endOne = hub.subscribe(listener);
  hub.subscribe(listener);
  hub.publish(CHANGE);
  endOne();
  hub.publish(CHANGE);
  expect(count).toBe(3);
});

test("listeners can be added and removed while an event is published", () => {
  const hub = createEventHub(() => {});
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
