import { expect, test } from "vitest";
import { type AheadOptions, runAhead } from "../../../services/async/run_ahead.ts";

interface Item {
  name: string;
  size?: number;
  isAlone?: boolean;
}

/** Work that ends when the test says so. */
function controlled(items: Item[], limits: Partial<AheadOptions<Item, string>> = {}) {
  const started: string[] = [];
  const works = new Map<string, PromiseWithResolvers<string>>();
  let isReturned = false;
  async function* list() {
    try {
      yield* items;
    } finally {
      isReturned = true;
    }
  }
  const results = runAhead(list(), {
    run({ name }) {
      started.push(name);
      const work = Promise.withResolvers<string>();
      works.set(name, work);
      return work.promise;
    },
    getSize: ({ size = 1 }) => size,
    isAlone: ({ isAlone = false }) => isAlone,
    maxCount: 3,
    maxSize: 10,
    ...limits,
  });
  return {
    started,
    works,
    results,
    isReturned: () => isReturned,
    end: (name: string) => works.get(name)!.resolve(name),
  };
}

/** Lets everything run that waits for nothing else. */
const settle = () => new Promise((resolve) => setTimeout(resolve));

test("a few items run at once, and their results come in order", async () => {
  const { started, results, end } = controlled(["a", "b", "c", "d", "e"].map((name) => ({ name })));
  const first = results.next();
  await settle();
  expect(started).toEqual(["a", "b", "c"]);
  end("b");
  end("c");
  await settle();
  expect(started).toEqual(["a", "b", "c"]);
  end("a");
  expect((await first).value).toBe("a");
  expect((await results.next()).value).toBe("b");
  await settle();
  expect(started).toEqual(["a", "b", "c", "d"]);
  expect((await results.next()).value).toBe("c");
  end("d");
  expect((await results.next()).value).toBe("d");
  await settle();
  end("e");
  expect((await results.next()).value).toBe("e");
  expect((await results.next()).done).toBe(true);
});

test("items that are too large together wait for each other", async () => {
  const items = [{ name: "a", size: 6 }, { name: "b", size: 4 }, { name: "huge", size: 99 }, { name: "c" }];
  const { started, results, end } = controlled(items);
  const next = results.next();
  await settle();
  expect(started).toEqual(["a", "b"]);
  end("a");
  end("b");
  await next;
  await results.next();
  await settle();
  expect(started).toEqual(["a", "b"]);
  const huge = results.next();
  await settle();
  expect(started).toEqual(["a", "b", "huge"]);
  end("huge");
  await huge;
  expect(started).toEqual(["a", "b", "huge"]);
  const last = results.next();
  await settle();
  end("c");
  expect((await last).value).toBe("c");
});

test("an item that must be alone waits for those before it, and those after it wait for its result", async () => {
  const { started, results, end } = controlled([{ name: "a" }, { name: "alone", isAlone: true }, { name: "b" }]);
  const first = results.next();
  await settle();
  expect(started).toEqual(["a"]);
  end("a");
  await first;
  const second = results.next();
  await settle();
  expect(started).toEqual(["a", "alone"]);
  end("alone");
  await second;
  await settle();
  expect(started).toEqual(["a", "alone"]);
  const third = results.next();
  await settle();
  expect(started).toEqual(["a", "alone", "b"]);
  end("b");
  expect((await third).value).toBe("b");
});

test("what fails is thrown in its place, and ends the source", async () => {
  const { works, results, end, isReturned } = controlled(["a", "b", "c", "d"].map((name) => ({ name })));
  const first = results.next();
  await settle();
  works.get("b")!.reject(new Error("b failed"));
  end("a");
  expect((await first).value).toBe("a");
  await expect(results.next()).rejects.toThrow("b failed");
  await settle();
  expect(isReturned()).toBe(true);
  expect((await results.next()).done).toBe(true);
});

test("what the source throws comes after the results before it", async () => {
  async function* list() {
    yield "a";
    throw new Error("the source failed");
  }
  const options = { run: (item: string) => Promise.resolve(item), getSize: () => 1, isAlone: () => false };
  const results = runAhead(list(), { ...options, maxCount: 3, maxSize: 3 });
  expect((await results.next()).value).toBe("a");
  await expect(results.next()).rejects.toThrow("the source failed");
});

test("nothing more runs once nobody reads the results", async () => {
  const { started, results, end, isReturned } = controlled(["a", "b", "c", "d"].map((name) => ({ name })));
  const first = results.next();
  await settle();
  end("a");
  await first;
  await results.return(undefined);
  await settle();
  expect(isReturned()).toBe(true);
  expect(started).toEqual(["a", "b", "c"]);
});
