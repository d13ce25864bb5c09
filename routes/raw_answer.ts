/**
 * Hands on an answer whose body is ready bytes or a stream. Hono's types know only JSON values here, though the schema
 * of the route documents the very shape that the bytes have.
 */
export function rawAnswer(response: Response): never {
  return response as never;
}
