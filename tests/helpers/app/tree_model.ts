/** A simple in-memory model of a conversation tree, to compare with the server. */

/** One message. */
export interface ModelMessage {
  id: string;
  role: string;
  /** By number of the version; `undefined` if the model can't know the text. */
  texts: (string | undefined)[];
  active: number;
  /** The continuation of each version, once versions have their own. */
  next?: ModelMessage[][];
  /** The version that was active when the continuations were separated. */
  first?: number;
}

/** The position of removed messages. */
interface Aad {
  after?: string;
  before?: string;
  /** The version that they followed, if `after` had continuations. */
  version?: number;
}

/** Messages that were removed. */
export interface Removed {
  messages: ModelMessage[];
  place: Aad;
  epoch: number;
}

/** A message of a PUT: one on the path, possibly with another text, or a new one. */
export interface PutMessage {
  id: string;
  role: string;
  content: string;
}

/** Number of messages that the server compares by time. */
const LOOKED_AT = 64;

/** The tree. */
export class TreeModel {
  root: ModelMessage[] = [];
  /** Changes when messages may have moved, so that positions in versions are no longer known. */
  epoch = 0;
  /** The conversation in the API's format. */
  readonly createdAt: Map<string, string>;

  constructor(createdAt = new Map<string, string>()) {
    this.createdAt = createdAt;
  }

  clone(): TreeModel {
    const copy = new TreeModel(this.createdAt);
    copy.root = structuredClone(this.root);
    copy.epoch = this.epoch;
    return copy;
  }

  path(list = this.root): ModelMessage[] {
    const path: ModelMessage[] = [];
    for (let at: ModelMessage[] | undefined = list; at !== undefined;) {
      path.push(...at);
      const last: ModelMessage | undefined = at.at(-1);
      at = last?.next?.[last.active];
    }
    return path;
  }

  /** Returns all linear sequences of messages. */
  lists(): ModelMessage[][] {
    const lists = [this.root];
    for (const list of lists) for (const { next = [] } of list) lists.push(...next.filter((one) => one !== undefined));
    return lists;
  }

  /** Returns the continuations of inactive versions, along the active versions below them. */
  continuations(): { message_id: string; n: number; path: ModelMessage[] }[] {
    return this.lists().flat().flatMap(({ id, next = [], active }) =>
      next.flatMap((list, n) => n === active ? [] : [{ message_id: id, n, path: this.path(list) }])
    );
  }

  find(id: string): { list: ModelMessage[]; index: number; message: ModelMessage } | undefined {
    for (const list of this.lists()) {
      const index = list.findIndex((message) => message.id === id);
      if (index >= 0) return { list, index, message: list[index]! };
    }
    return undefined;
  }

  isOnPath(id: string): boolean {
    return this.path().some((message) => message.id === id);
  }

  add(message: ModelMessage, after?: string): void {
    const found = after === undefined ? undefined : this.find(after)!;
    if (found === undefined) this.#leaf(this.root).push(message);
    else if (found.message.next) found.message.next[found.message.active]!.unshift(message);
    else found.list.splice(found.index + 1, 0, message);
  }

  addVersion(id: string, text: string, reply: ModelMessage): void {
    const { message } = this.#branch(id);
    message.texts.push(text);
    message.next!.push([reply]);
    message.active = message.texts.length - 1;
  }

  switch(id: string, n: number): void {
    const { message } = this.find(id)!;
    if (message.role === "user" && n !== message.active) {
      this.#branch(id);
      message.next![n] ??= [];
    }
    message.active = n;
  }

  #branch(id: string) {
    const found = this.find(id)!;
    const { message, list, index } = found;
    if (message.next === undefined) {
      message.next = message.texts.map(() => []);
      message.next[message.active] = list.splice(index + 1);
      message.first = message.active;
    }
    return found;
  }

  /** @param isAll True to also remove everything after it. */
  remove(id: string, isAll: boolean): Removed {
    const path = this.path();
    const at = path.findIndex((message) => message.id === id);
    const { list, index, message } = this.find(id)!;
    const isTree = isAll || message.next !== undefined;
    const previous = path[at - 1];
    const place = {
      after: previous?.id,
      before: isTree ? undefined : path[at + 1]?.id,
      version: previous?.next && previous.active,
    };
    return { messages: list.splice(index, isTree ? Infinity : 1), place, epoch: this.epoch };
  }

  /** Returns whether the model knows the result of restoring. */
  knowsPlaceOf({ place, epoch }: Removed): boolean {
    const after = place.after === undefined ? undefined : this.find(place.after)?.message;
    return after?.next === undefined || epoch === this.epoch;
  }

  /** Returns false if one of the ids exists again. */
  restore({ messages, place }: Removed): boolean {
    const restored = structuredClone(messages);
    const inside = new TreeModel();
    inside.root = restored;
    if (inside.lists().flat().some(({ id }) => this.find(id) !== undefined)) return false;
    const after = place.after === undefined ? undefined : this.find(place.after);
    const following = after?.message.next?.[place.version ?? after.message.first!];
    if (restored.some(({ next }) => next !== undefined)) {
      this.#leaf(following ?? after?.list ?? this.root).push(...restored);
      this.epoch++;
      return true;
    }
    if (after !== undefined) {
      const list = following ?? after.list;
      const start = following === undefined ? after.index + 1 : 0;
      let at = start;
      const isHere = (one: ModelMessage | undefined) =>
        one !== undefined && one.id !== place.before && this.#isEarlier(one, restored[0]!) && one.next === undefined;
      while (isHere(list[at]) && at - start < LOOKED_AT - 1) at++;
      list.splice(at, 0, ...restored);
      return true;
    }
    const before = place.before === undefined ? undefined : this.find(place.before);
    if (before !== undefined) before.list.splice(before.index, 0, ...restored);
    else this.#restoreAtEnd(restored, place.after === undefined);
    return true;
  }

  #restoreAtEnd(restored: ModelMessage[], isStart: boolean): void {
    const path = isStart ? this.path() : this.path().reverse();
    for (const [index, message] of path.entries()) {
      const isEarly = this.#isEarlier(message, restored[0]!);
      const isLast = index === LOOKED_AT - 1 || (!isStart && index === path.length - 1);
      if (isEarly === isStart && !isLast) continue;
      const { list, index: at } = this.find(message.id)!;
      if (!isEarly) list.splice(at, 0, ...restored);
      else if (message.next) message.next[message.active]!.unshift(...restored);
      else list.splice(at + 1, 0, ...restored);
      return;
    }
    this.#leaf(this.root).push(...restored);
  }

  put(messages: PutMessage[]): void {
    const present = new Map(this.path().map((message) => [message.id, message]));
    this.root = [];
    let list = this.root;
    for (const { id, role, content } of messages) {
      const message: ModelMessage = present.get(id) ?? { id, role, texts: [content], active: 0 };
      message.texts[message.active] = content;
      message.role = role;
      list.push(message);
      if (message.next) list = message.next[message.active] = [];
    }
    this.epoch++;
  }

  /** Restores an earlier state. Texts of inactive versions may have changed since. */
  restoreAll(past: TreeModel): void {
    this.root = structuredClone(past.root);
    for (const { texts, active } of this.lists().flat()) {
      texts.forEach((_, n) => n !== active && (texts[n] = undefined));
    }
    this.epoch++;
  }

  #leaf(list: ModelMessage[]): ModelMessage[] {
    for (let at = list;;) {
      const last = at.at(-1);
      if (last?.next === undefined) return at;
      at = last.next[last.active]!;
    }
  }

  #isEarlier(one: ModelMessage, other: ModelMessage): boolean {
    const [a, b] = [this.createdAt.get(one.id)!, this.createdAt.get(other.id)!];
    return a === b ? one.id < other.id : a < b;
  }
}
