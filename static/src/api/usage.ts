/** API calls for the usage of models. */
import type { ApiClient } from "./client.ts";
import type { ChatUsage, ModelPrice, UsageReport } from "./types.ts";

/** All calls throw `ApiError`. */
export interface UsageApi {
  /** Returns the usage of the last days, which start at midnight of this device. */
  read(days: number): Promise<UsageReport>;
  readChat(conversationId: string): Promise<ChatUsage>;
  /** Deletes all counts. */
  clear(): Promise<void>;
  listPrices(): Promise<ModelPrice[]>;
  /** Sets the price of a model; `null` removes it. */
  setPrice(
    model: Pick<ModelPrice, "connection_id" | "model">,
    price: Omit<ModelPrice, "connection_id" | "model"> | null,
  ): Promise<void>;
}

/** Returns the calls, bound to a client. */
export function usageApi(client: ApiClient): UsageApi {
  const read = async <T>(path: string) => await (await client.send("GET", path)).json() as T;
  return {
    read(days) {
      const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
      return read(`/api/usage?${new URLSearchParams({ days: String(days), time_zone: timeZone })}`);
    },
    readChat: (id) => read(`/api/conversations/${encodeURIComponent(id)}/usage`),
    async clear() {
      await (await client.send("DELETE", "/api/usage")).body?.cancel();
    },
    listPrices: () => read("/api/usage/prices"),
    async setPrice(model, price) {
      await (await client.send("PUT", "/api/usage/prices", { body: { ...model, price } })).body?.cancel();
    },
  };
}
