from gallocheck.report.play import Play

play = Play(capacity=10_000, alignment=64)  # one device, bytes
prompt, token = play.graph(4000, 2000), play.graph(400, 200)  # each tensor reads the one before it
target = play.owner()
draft = target.borrower()
target.alloc(prompt)
draft.request_shrink()
target.reserve(token)
print(draft.reserve(token))  # R6: only now do the shared buffers shrink
print(play)
play.draw("memory.svg")
