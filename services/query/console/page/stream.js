// Server-sent events, read from a response of fetch: EventSource could not send a token.

/** The events of a response, each {event, id, data}, as the HTML standard has them. Calls `onChunk` for each chunk. */
export async function* events(response, onChunk) {
  let event = { event: "message", id: null, data: [] };
  for await (const line of lines(response, onChunk)) {
    if (line === "") {
      if (event.data.length) yield { ...event, data: event.data.join("\n") };
      event = { event: "message", id: null, data: [] };
    } else if (!line.startsWith(":")) take(event, line);
  }
}

function take(event, line) {
  const colon = line.indexOf(":");
  const field = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
  if (field === "data") event.data.push(value);
  else if (field === "event" || field === "id") event[field] = value;
}

async function* lines(response, onChunk) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    onChunk();
    const parts = (rest + value).split(/\r\n|\n|\r/);
    rest = parts.pop();
    yield* parts;
  }
}
