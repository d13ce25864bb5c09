/** Measures leaks of repeated work in this process. */
import v8 from "node:v8";
import vm from "node:vm";

v8.setFlagsFromString("--expose-gc");
const collectGarbage: () => void = vm.runInNewContext("gc");

/** Resources of a process. */
export interface Holdings {
  heapBytes: number;
  /** Open files and sockets; 0 on systems other than Linux. */
  descriptors: number;
  listeners: number;
}

/** Counts listeners while it is in use. */
export interface ListenerCount extends Disposable {
  /** Listeners for "abort" on signals that are still reachable, neither removed nor called. */
  readonly count: number;
}

/** Counts the listeners that are added to abort signals from here on. */
export function countListeners(): ListenerCount {
  const { addEventListener, removeEventListener } = EventTarget.prototype;
  const listenersOf = new WeakMap<EventTarget, Set<unknown>>();
  const signals = new Set<WeakRef<AbortSignal>>();
  EventTarget.prototype.addEventListener = function (type, listener, options) {
    if (this instanceof AbortSignal && type === "abort" && listener !== null && !this.aborted) {
      const known = listenersOf.get(this);
      known?.add(listener);
      if (known === undefined) {
        listenersOf.set(this, new Set([listener]));
        signals.add(new WeakRef(this));
      }
    }
    addEventListener.call(this, type, listener, options);
  };
  EventTarget.prototype.removeEventListener = function (type, listener, options) {
    if (type === "abort") listenersOf.get(this)?.delete(listener);
    removeEventListener.call(this, type, listener, options);
  };
  return {
    get count() {
      let count = 0;
      for (const reference of signals) {
        const signal = reference.deref();
        if (signal === undefined || signal.aborted) signals.delete(reference);
        else count += listenersOf.get(signal)!.size;
      }
      return count;
    },
    [Symbol.dispose]() {
      Object.assign(EventTarget.prototype, { addEventListener, removeEventListener });
    },
  };
}

/** Measures what the process holds once garbage is collected. */
export async function measured(listeners: ListenerCount): Promise<Holdings> {
  // Recently closed resources are released in later ticks.
  for (let tick = 0; tick < 5; tick++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    collectGarbage();
  }
  const isLinux = Deno.build.os === "linux";
  const descriptors = isLinux ? (await Array.fromAsync(Deno.readDir("/proc/self/fd"))).length : 0;
  return { heapBytes: Deno.memoryUsage().heapUsed, descriptors, listeners: listeners.count };
}
