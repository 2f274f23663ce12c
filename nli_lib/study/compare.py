def stored(request):
    return None
